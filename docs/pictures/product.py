"""The kernel of the pictures on docs/layouts.md."""

from __future__ import annotations

import warpwave as ww
from warpwave import cdiv, f32, gl, rt, st


@ww.kernel
def product(a: gl, b: gl, c: gl[f32], *, BM=64, BN=64, BK=64) -> None:
    """c = a @ b.T"""
    m, n = ww.grid(cdiv(c.rows, BM), cdiv(c.cols, BN))
    acc = ww.zeros(rt[f32, BM, BN])
    for k in ww.pipeline(cdiv(a.cols, BK)):
        at = ww.load(a, (m, k), st[a.dtype, BM, BK])
        bt = ww.load(b, (n, k), st[b.dtype, BN, BK])
        acc = ww.mma_ABt(acc, at, bt)
    ww.store(c, (m, n), acc)
