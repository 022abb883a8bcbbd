"""Matrix products: any of the four transpositions, batched or not, with optional bias and activation."""

from __future__ import annotations

import warpwave as ww
from warpwave import bf16, cdiv, f32, gl, i8, i32, rt, rv, st
from warpwave.kernels.samples import array
from warpwave.kernels.shapes import expect_equal, fitting

TILE_ROWS = ww.derived(lambda c: fitting(c.shape[-2], 64, 256))
TILE_COLUMNS = ww.derived(lambda c: fitting(c.shape[-1], 64, 256))
PRODUCTS = {
    (False, False): ww.mma_AB,
    (False, True): ww.mma_ABt,
    (True, False): ww.mma_AtB,
    (True, True): ww.mma_AtBt,
}


@ww.kernel
def gemm(
    a: gl,
    b: gl,
    c: gl,
    bias: gl | None = None,
    *,
    transpose_a=False,
    transpose_b=False,
    activation=None,
    precision="ieee",
    BM=TILE_ROWS,
    BN=TILE_COLUMNS,
    BK=64,
):
    """c[..., M, N] = activation(a @ b + bias).

    a is [..., M, K], or [..., K, M] with `transpose_a`; b is [..., K, N], or [..., N, K] with
    `transpose_b`; bias is [N]. Leading dimensions are batches. a and b have one float dtype (or two fp8
    dtypes of one family) and accumulate in f32, or are i8 and accumulate in i32. c has any dtype.
    `activation` is any function of a tile, such as ww.relu, ww.gelu or ww.silu.
    """
    depth = a.rows if transpose_a else a.cols
    expect_equal("depth of the product", depth, b.cols if transpose_b else b.rows)
    expect_equal("rows of the product", c.rows, a.cols if transpose_a else a.rows)
    expect_equal("columns of the product", c.cols, b.rows if transpose_b else b.cols)
    for extents in zip(a.shape[:-2], b.shape[:-2], c.shape[:-2], strict=True):
        expect_equal("batch", *extents)
    if bias is not None:
        expect_equal("length of the bias", bias.cols, c.cols)

    *batch, m, n = ww.grid(*c.shape[:-2], cdiv(c.rows, BM), cdiv(c.cols, BN))
    multiply = PRODUCTS[transpose_a, transpose_b]
    acc = ww.zeros(rt[i32 if a.dtype.is_int else f32, BM, BN])
    for k in ww.pipeline(cdiv(depth, BK)):
        if transpose_a:
            a_tile = ww.load(a, (*batch, k, m), st[a.dtype, BK, BM])
        else:
            a_tile = ww.load(a, (*batch, m, k), st[a.dtype, BM, BK])
        if transpose_b:
            b_tile = ww.load(b, (*batch, n, k), st[b.dtype, BN, BK])
        else:
            b_tile = ww.load(b, (*batch, k, n), st[b.dtype, BK, BN])
        acc = multiply(acc, a_tile, b_tile, precision=precision)

    if bias is not None:
        acc = acc + ww.load(bias, n, rv[i32 if bias.dtype.is_int else f32, BN])[None, :]
    if activation is not None:
        acc = activation(acc)
    ww.store(c, (*batch, m, n), acc)


@gemm.samples
def _samples(rng):
    for m, n, k in ((256, 256, 128), (130, 61, 257), (1, 3, 0)):
        inputs = {"a": array(rng, bf16, m, k), "b": array(rng, bf16, k, n), "bias": array(rng, f32, n)}
        yield {**inputs, "c": array(rng, bf16, m, n), "activation": ww.gelu}
    yield {"a": array(rng, i8, 70, 33), "b": array(rng, i8, 50, 33), "c": array(rng, i32, 70, 50), "transpose_b": True}
