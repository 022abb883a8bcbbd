"""LayerNorm over rows of any length, alone or fused with dropout and a residual stream."""

from __future__ import annotations

import warpwave as ww
from warpwave import bf16, cdiv, f32, gl, i32, i64, rt, rv
from warpwave.kernels.dropout import dropout
from warpwave.kernels.samples import array
from warpwave.kernels.shapes import ROW_COUNT, ROW_WIDTH, expect_equal, expect_same_shape, row_blocks, row_number


@ww.kernel
def layernorm(
    x: gl,
    y: gl,
    weight: gl | None = None,
    bias: gl | None = None,
    mean: gl[f32] | None = None,
    rstd: gl[f32] | None = None,
    *,
    eps=1e-5,
    BM=ROW_COUNT,
    BN=ROW_WIDTH,
):
    """y = (x - mean) / sqrt(variance + eps) * weight + bias for each row of x[..., M, N].

    weight and bias are [N]; mean and rstd, the inverse deviation, are [..., M] and receive the rows'
    statistics. The variance is that of the row itself (divided by N), in f32 around the mean. A row of at
    most BN elements is read once and held in registers, a longer one is read three times.
    """
    expect_same_shape(x, y)
    _expect_affine(x, weight, bias)
    *lead, i = row_blocks(x, BM)

    def read(j):
        return ww.load(x, (*lead, i, j), rt[f32, BM, BN])

    def write(j, tile):
        ww.store(y, (*lead, i, j), _affine(tile, weight, bias, j))

    row_mean, row_rstd = _normalise(read, read, write, x.cols, eps, BM, BN)
    if mean is not None:
        ww.store(mean, (*lead, i), row_mean)
    if rstd is not None:
        ww.store(rstd, (*lead, i), row_rstd)


@ww.kernel
def dropout_residual_layernorm(
    x: gl,
    residual: gl,
    y: gl,
    total: gl,
    weight: gl | None = None,
    bias: gl | None = None,
    seed: i64 = 0,
    offset: i64 = 0,
    *,
    p=0.0,
    eps=1e-5,
    BM=ROW_COUNT,
    BN=ROW_WIDTH,
):
    """total = dropout(x) + residual and y = layernorm(total), for x[..., M, N].

    Which elements are dropped follows from (seed, offset, row, column) alone, see `dropout`; rows are
    counted over all leading dimensions. `total` is rounded to its dtype, and it is the rounded sum that is
    normalised: the result of the unfused kernels.
    """
    expect_same_shape(x, residual, y, total)
    _expect_affine(x, weight, bias)
    *lead, i = row_blocks(x, BM)
    row = row_number(x, lead, i * BM)

    def first(j):
        kept = dropout(ww.load(x, (*lead, i, j), rt[f32, BM, BN]), p, seed, offset, row=row, col=j * BN)
        rounded = ww.cast(kept + ww.load(residual, (*lead, i, j), rt[f32, BM, BN]), total.dtype)
        ww.store(total, (*lead, i, j), rounded)
        return ww.cast(rounded, f32)

    def again(j):
        return ww.load(total, (*lead, i, j), rt[f32, BM, BN])

    def write(j, tile):
        ww.store(y, (*lead, i, j), _affine(tile, weight, bias, j))

    _normalise(first, again, write, x.cols, eps, BM, BN)


def _normalise(first, again, write, cols, eps, BM, BN):
    """Write normalised tiles of rows; `first(j)` and `again(j)` read tile j for the first time and later."""
    if cols <= BN:
        tile = first(0)
        mean = ww.sum(tile, axis=1) / cols
        centred = _centred(tile, mean, cols)
        rstd = ww.rsqrt(ww.sum(centred * centred, axis=1) / cols + eps)
        write(0, centred * rstd[:, None])
    else:
        mean, squares = ww.zeros(rv[f32, BM]), ww.zeros(rv[f32, BM])
        for j in ww.range(cdiv(cols, BN)):
            mean = mean + ww.sum(first(j), axis=1)
        mean = mean / cols
        if first is not again:
            ww.barrier()  # `first` has written what `again` reads
        for j in ww.range(cdiv(cols, BN)):
            centred = _centred(again(j), mean, cols - j * BN)
            squares = squares + ww.sum(centred * centred, axis=1)
        rstd = ww.rsqrt(squares / cols + eps)
        for j in ww.range(cdiv(cols, BN)):
            write(j, (again(j) - mean[:, None]) * rstd[:, None])
    return mean, rstd


def _centred(tile, mean, cols):
    """Deviations from the mean, 0 beyond the row's end."""
    centred = tile - mean[:, None]
    if cols < tile.shape[1]:
        inside = ww.iota(rv[i32, tile.shape[1]])[None, :] < cols
        centred = ww.where(inside, centred, 0.0)
    return centred


def _affine(tile, weight, bias, j):
    vector = rv[f32, tile.shape[1]]
    scale = 1.0 if weight is None else ww.load(weight, j, vector)[None, :]
    if bias is None:
        return tile if weight is None else tile * scale
    return ww.fma(tile, scale, ww.load(bias, j, vector)[None, :])


def _expect_affine(x, weight, bias):
    if weight is not None:
        expect_equal("length of the weight", weight.cols, x.cols)
    if bias is not None:
        expect_equal("length of the bias", bias.cols, x.cols)


@layernorm.samples
def _samples(rng):
    for width in (1000, 5000):
        affine = {name: array(rng, f32, width) for name in ("weight", "bias")}
        statistics = {name: array(rng, f32, 6) for name in ("mean", "rstd")}
        yield {"x": array(rng, bf16, 6, width), "y": array(rng, bf16, 6, width), **affine, **statistics}


@dropout_residual_layernorm.samples
def _fused_samples(rng):
    for width, p in ((1000, 0.1), (5000, 0.5)):
        tensors = {name: array(rng, bf16, 6, width) for name in ("x", "residual", "y", "total")}
        affine = {name: array(rng, f32, width) for name in ("weight", "bias")}
        yield {**tensors, **affine, "seed": 2**40 + 1, "offset": 7, "p": p}
