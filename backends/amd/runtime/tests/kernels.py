"""Small kernels that the runtime's tests launch."""

from __future__ import annotations

import warpwave as ww
from warpwave import cdiv, f32, gl, i32, rt


@ww.kernel
def affine(x: gl[f32], y: gl[f32], factor: f32, *, B=32):
    """y = factor x + 1"""
    i, j = ww.grid(cdiv(x.rows, B), cdiv(x.cols, B))
    ww.store(y, (i, j), ww.load(x, (i, j), rt[f32, B, B]) * factor + 1.0)


@ww.kernel
def doubled(x: gl[f32], *, B=32):
    """x = 2 x in place"""
    i, j = ww.grid(cdiv(x.rows, B), cdiv(x.cols, B))
    ww.store(x, (i, j), ww.load(x, (i, j), rt[f32, B, B]) * 2.0)


@ww.kernel
def below(x: gl[f32], limit: f32, *, B=32):
    """Refuses an x with an element that is not below `limit`."""
    i, j = ww.grid(cdiv(x.rows, B), cdiv(x.cols, B))
    tile = ww.load(x, (i, j), rt[f32, B, B])
    ww.check(ww.max(ww.max(tile, axis=1)) < limit, "x is too large")


@ww.kernel
def telling(x: gl[f32]):
    """Prints the first elements of each row."""
    i = ww.grid(x.rows)
    ww.print("row", ww.load(x, (i, 0), rt[f32, 1, 4]))


@ww.kernel
def counted(out: gl[i32]):
    """Adds 1 to the only element, once for each of 64 blocks."""
    ww.grid(64)
    ww.atomic_add(out, (0, 0), ww.full(rt[i32, 1, 1], 1))
