"""Rotary position embedding, with the halves of a head rotated against each other or neighbouring pairs."""

from __future__ import annotations

import warpwave as ww
from warpwave import bf16, cdiv, f32, gl, rt
from warpwave.kernels.samples import array
from warpwave.kernels.shapes import expect_equal, expect_same_shape

HEAD_WIDTH = ww.derived(lambda x: x.shape[-1])
HEADS_PER_BLOCK = ww.derived(lambda x: 4 if x.shape[1] % 4 == 0 else 1)


@ww.kernel
def rotary(x: gl, y: gl, cos: gl, sin: gl, *, interleaved=False, D=HEAD_WIDTH, BH=HEADS_PER_BLOCK, BN=32):
    """y[B, H, N, D] = each pair of x[B, H, N, D] rotated by its position's angle; y may be x.

    cos and sin are [N, D / 2]. Pair i of a head is elements i and i + D / 2, or, `interleaved`, elements
    2 i and 2 i + 1. D is even. BH heads share one read of the angles.
    """
    assert D % 2 == 0, f"a head that is rotated in pairs has even width, got {D}"
    half = D // 2
    expect_same_shape(x, y)
    expect_same_shape(cos, sin)
    expect_equal("width of a head", x.cols, D)
    expect_equal("number of positions", x.rows, cos.rows)
    ww.check(cos.cols == half, f"cos and sin have one column for each pair, {half}")

    b, heads, n = ww.grid(x.batch, cdiv(x.depth, BH), cdiv(x.rows, BN))
    c = ww.load(cos, (n, 0), rt[f32, BN, half])
    s = ww.load(sin, (n, 0), rt[f32, BN, half])
    for h in [heads * BH + i for i in range(BH)]:
        if interleaved:
            first, second = ww.deinterleave(ww.load(x, (b, h, n, 0), rt[f32, BN, D]))
            turned = ww.interleave(first * c - second * s, second * c + first * s)
            ww.store(y, (b, h, n, 0), turned)
        else:
            first = ww.load(x, (b, h, n, 0), rt[f32, BN, half])
            second = ww.load(x, (b, h, n, 1), rt[f32, BN, half])
            ww.store(y, (b, h, n, 0), first * c - second * s)
            ww.store(y, (b, h, n, 1), second * c + first * s)


@rotary.samples
def _samples(rng):
    for interleaved in (False, True):
        heads = {name: array(rng, bf16, 2, 4, 50, 64) for name in ("x", "y")}
        angles = {name: array(rng, f32, 50, 32) for name in ("cos", "sin")}
        yield {**heads, **angles, "interleaved": interleaved}
