"""RMSNorm over rows of any length, optionally of a sum with a residual stream that is returned as well."""

from __future__ import annotations

import warpwave as ww
from warpwave import bf16, cdiv, f32, gl, rt, rv
from warpwave.kernels.samples import array
from warpwave.kernels.shapes import ROW_COUNT, ROW_WIDTH, expect_equal, expect_same_shape, row_blocks


@ww.kernel
def rmsnorm(
    x: gl,
    y: gl,
    weight: gl | None = None,
    residual: gl | None = None,
    total: gl | None = None,
    *,
    eps=1e-6,
    BM=ROW_COUNT,
    BN=ROW_WIDTH,
):
    """y = t / sqrt(mean(t * t) + eps) * weight for each row t of x[..., M, N], or of x + residual.

    With `residual`, `total` receives x + residual, rounded to its dtype, and it is that which is normalised:
    the result of the two unfused kernels. weight is [N]. Sums are in f32. A row of at most BN elements is
    read once and held in registers, a longer one is read twice.
    """
    assert (residual is None) == (total is None), "residual and total go together"
    expect_same_shape(x, y)
    if residual is not None:
        expect_same_shape(x, residual, total)
    if weight is not None:
        expect_equal("length of the weight", weight.cols, x.cols)
    *lead, i = row_blocks(x, BM)

    def first(j):
        tile = ww.load(x, (*lead, i, j), rt[f32, BM, BN])
        if residual is None:
            return tile
        rounded = ww.cast(tile + ww.load(residual, (*lead, i, j), rt[f32, BM, BN]), total.dtype)
        ww.store(total, (*lead, i, j), rounded)
        return ww.cast(rounded, f32)

    def finish(j, tile, scale):
        tile = tile * scale[:, None]
        if weight is not None:
            tile = tile * ww.load(weight, j, rv[f32, BN])[None, :]
        ww.store(y, (*lead, i, j), tile)

    if x.cols <= BN:
        tile = first(0)
        finish(0, tile, ww.rsqrt(ww.sum(tile * tile, axis=1) / x.cols + eps))
    else:
        squares = ww.zeros(rv[f32, BM])
        for j in ww.range(cdiv(x.cols, BN)):
            tile = first(j)
            squares = squares + ww.sum(tile * tile, axis=1)
        if residual is not None:
            ww.barrier()  # the sums are read back
        source = x if residual is None else total
        scale = ww.rsqrt(squares / x.cols + eps)
        for j in ww.range(cdiv(x.cols, BN)):
            finish(j, ww.load(source, (*lead, i, j), rt[f32, BM, BN]), scale)


@rmsnorm.samples
def _samples(rng):
    for width in (1000, 5000):
        names = ("x", "y", "residual", "total")
        yield {**{name: array(rng, bf16, 6, width) for name in names}, "weight": array(rng, f32, width)}
