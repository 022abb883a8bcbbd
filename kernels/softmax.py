"""Softmax over rows of any length."""

from __future__ import annotations

import math

import warpwave as ww
from warpwave import bf16, cdiv, f32, gl, rt, rv
from warpwave.kernels.samples import array
from warpwave.kernels.shapes import ROW_COUNT, ROW_WIDTH, expect_same_shape, row_blocks

LOG2E = math.log2(math.e)


@ww.kernel
def softmax(x: gl, y: gl, *, BM=ROW_COUNT, BN=ROW_WIDTH):
    """y[..., M, N] = softmax of x[..., M, N] along N, in f32; x is f32, f16, bf16 or another type with infinities.

    A row of at most BN elements is read once and held in registers; a longer one is read twice. As
    elsewhere, a row without a finite maximum (all -inf, or with +inf or NaN) gives NaN.
    """
    expect_same_shape(x, y)
    *lead, i = row_blocks(x, BM)
    if x.cols <= BN:
        tile = ww.load(x, (*lead, i, 0), rt[f32, BM, BN], fill=-math.inf)
        powers = ww.exp2((tile - ww.max(tile, axis=1)[:, None]) * LOG2E)
        ww.store(y, (*lead, i, 0), powers * (1.0 / ww.sum(powers, axis=1))[:, None])
    else:
        peak, total = ww.full(rv[f32, BM], -math.inf), ww.zeros(rv[f32, BM])
        for j in ww.range(cdiv(x.cols, BN)):
            tile = ww.load(x, (*lead, i, j), rt[f32, BM, BN], fill=-math.inf)
            last, peak = peak, ww.maximum(peak, ww.max(tile, axis=1))
            base = ww.where(peak == -math.inf, 0.0, peak)  # -inf - -inf would be NaN though more is to come
            powers = ww.exp2((tile - base[:, None]) * LOG2E)
            total = total * ww.exp2((last - base) * LOG2E) + ww.sum(powers, axis=1)
        scale = 1.0 / total
        for j in ww.range(cdiv(x.cols, BN)):
            tile = ww.load(x, (*lead, i, j), rt[f32, BM, BN])
            ww.store(y, (*lead, i, j), ww.exp2((tile - peak[:, None]) * LOG2E) * scale[:, None])


@softmax.samples
def _samples(rng):
    yield {"x": array(rng, bf16, 9, 1000), "y": array(rng, bf16, 9, 1000)}
    yield {"x": array(rng, f32, 2, 3, 5000), "y": array(rng, f32, 2, 3, 5000)}
