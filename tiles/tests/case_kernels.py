"""Kernels for the numbered cases."""

from __future__ import annotations

import warpwave as ww
from warpwave.tiles.dtypes import f32, fp8e4m3, i32


def padded_fp8(x: ww.gl, out: ww.gl):
    ww.grid(1)
    ww.store(out, (0,), ww.load(x, (0,), ww.rv[fp8e4m3, 8], fill=float("-inf")))


def residual_step(x: ww.gl, residual: ww.gl, *, R=4, C=256):
    """residual += x * (a power of two that makes the residual's rows at most 1)."""
    ww.grid(1)
    old = ww.load(residual, (0, 0), ww.rt[f32, R, C])
    scale = ww.exp2(ww.floor(-ww.log2(ww.max(ww.abs(old), axis=1))))
    ww.store(residual, (0, 0), old + ww.load(x, (0, 0), ww.rt[f32, R, C]) * scale[:, None])


def gemm_gelu(a: ww.gl, b: ww.gl, c: ww.gl, *, BM=32, BN=32, BK=32):
    m, n = ww.grid(ww.cdiv(c.rows, BM), ww.cdiv(c.cols, BN))
    acc = ww.zeros(ww.rt[f32, BM, BN])
    for k in ww.pipeline(ww.cdiv(a.cols, BK)):
        acc = ww.mma_ABt(acc, ww.load(a, (m, k), ww.st[a.dtype, BM, BK]), ww.load(b, (n, k), ww.st[b.dtype, BN, BK]))
    ww.store(c, (m, n), ww.gelu(acc))


def keep_rows(out: ww.gl, seed: int, p: float, *, R=4, C=64):
    m = ww.grid(ww.cdiv(out.rows, R))
    keep = ww.random_uniform(ww.rt[f32, R, C], seed, row=m * R) >= p
    ww.store(out, (m, 0), ww.cast(keep, i32))


def keep_columns(out: ww.gl, seed: int, p: float, *, R=64, C=7):
    n = ww.grid(ww.cdiv(out.cols, C))
    keep = ww.random_uniform(ww.rt[f32, R, C], seed, col=n * C) >= p
    ww.store(out, (0, n), ww.cast(keep, i32))


def count_up(out: ww.gl, blocks: int, times: int):
    ww.grid(blocks)
    for _ in range(times):
        ww.atomic_add(out, (0,), 1.0)


def add_rows(x: ww.gl, out: ww.gl):
    m = ww.grid(x.rows)
    ww.atomic_add(out, (0,), ww.load(x, (m, 0)))


def add_one(out: ww.gl, *, B=512):
    ww.grid(1)
    ww.atomic_add(out, (0,), ww.full(ww.rv[out.dtype, B], 1))


def grouped_gemm(a: ww.gl, b: ww.gl, starts: ww.gl, c: ww.gl, *, BM=64, BN=64, BK=64):
    group, n = ww.grid(b.depth, ww.cdiv(b.rows, BN))
    low, high = ww.load(starts, (group,)), ww.load(starts, (group + 1,))
    for m in range(ww.cdiv(high - low, BM)):
        row = low + m * BM
        acc = ww.zeros(ww.rt[f32, BM, BN])
        for k in ww.pipeline(ww.cdiv(a.cols, BK)):
            at = ww.load(a, (row, k * BK), ww.st[a.dtype, BM, BK], unit="element")
            acc = ww.mma_ABt(acc, at, ww.load(b, (group, n, k), ww.st[b.dtype, BN, BK]))
        rows = ww.iota(ww.rv[i32, BM]) + row
        for i in range(ww.minimum(high - row, BM)):
            one = ww.sum(ww.where((rows == row + i)[:, None], acc, 0.0), axis=0)
            ww.store(c, (row + i, n), one, axes=(1,))


def copy_four(x: ww.gl, out: ww.gl):
    ww.grid(1)
    ww.store(out, (0,), ww.load(x, (0,), ww.rv[f32, 4]))


def start_of_batch(x: ww.gl, out: ww.gl, b: int):
    ww.grid(1)
    ww.store(out, (0,), ww.load(x, (b, 0, 0), ww.rv[x.dtype, 4]))


def first_column(x: ww.gl, out: ww.gl):
    m = ww.grid(x.rows)
    ww.store(out, (m,), ww.load(x, (m, 0)))


def row_at(x: ww.gl, out: ww.gl, r: int):
    ww.grid(1)
    ww.store(out, (0,), ww.load(x, (r, 0), ww.rv[x.dtype, 4]))


def double_at(x: ww.gl, block: int, *, B=1024):
    ww.grid(1)
    ww.store(x, (block,), ww.load(x, (block,), ww.rv[x.dtype, B]) * 2)


def tall_grid(out: ww.gl):
    _, y, _ = ww.grid(1, out.cols, 1)
    ww.store(out, (y,), y)
