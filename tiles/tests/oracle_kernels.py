"""Small kernels for the oracle's tests; `defect` switches in a mistake."""

from __future__ import annotations

import warpwave as ww
from warpwave.tiles.dtypes import bool_, f32, i32


def gemm(a, b, c, *, BM=16, BN=16, BK=16, defect=""):
    m, n = ww.grid(ww.cdiv(c.rows, BM), ww.cdiv(c.cols, BN))
    acc = ww.zeros(ww.rt[f32, BM, BN])
    steps = ww.cdiv(a.cols, BK)
    for k in ww.pipeline(steps - 1 if defect == "missing block" else steps):
        column = k * BK + 1 if defect == "off by one" else k * BK
        at = ww.load(a, (m * BM, column), ww.st[a.dtype, BM, BK], unit="element")
        bt = ww.load(b, (n, k), ww.st[b.dtype, BN, BK])
        acc = ww.mma_ABt(acc, at, bt)
    ww.store(c, (m, n), acc, rounding="rtz" if defect == "truncating cast" else "rne")


def softmax(x, y, *, R=8, C=64, defect=""):
    m = ww.grid(ww.cdiv(x.rows, R))
    t = ww.load(x, (m, 0), ww.rt[f32, R, C], fill=0 if defect == "no fill" else float("-inf"))
    e = ww.exp(t if defect == "no maximum" else t - ww.max(t, axis=1)[:, None])
    total = ww.sum(e, axis=1)[:, None]
    ww.store(y, (m, 0), e / (total + 1e-5 if defect == "epsilon" else total))


def layernorm(x, w, y, *, R=4, C=32, defect=""):
    m = ww.grid(ww.cdiv(x.rows, R))
    t = ww.load(x, (m, 0), ww.rt[f32, R, C])
    inside = ww.iota(ww.rv[i32, C])[None, :] < x.cols
    count = ww.cast(x.cols, f32)
    mean = ww.sum(t, axis=1) / count
    centred = t - mean[:, None]
    if defect != "dropped mask":
        centred = ww.where(inside, centred, 0.0)
    variance = ww.sum(centred * centred, axis=1) / (count - 1 if defect == "unbiased" else count)
    scale = ww.rsqrt(variance + 1e-5)
    ww.store(y, (m, 0), centred * scale[:, None] * ww.load(w, (0,), ww.rv[f32, C])[None, :])


def attention(q, k, v, o, *, R=8, C=8, D=16, defect=""):
    m = ww.grid(ww.cdiv(q.rows, R))
    qt = ww.load(q, (m, 0), ww.rt[q.dtype, R, D])
    top = ww.full(ww.rv[f32, R], float("-inf"))
    total, acc = ww.zeros(ww.rv[f32, R]), ww.zeros(ww.rt[f32, R, D])
    rows = ww.iota(ww.rv[i32, R]) + m * R + (k.rows - q.rows)
    for j in ww.pipeline(ww.cdiv(k.rows, C)):
        kt, vt = ww.load(k, (j, 0), ww.st[k.dtype, C, D]), ww.load(v, (j, 0), ww.st[v.dtype, C, D])
        s = ww.mma_ABt(ww.zeros(ww.rt[f32, R, C]), qt, kt) * 0.36067376
        cols = ww.iota(ww.rv[i32, C]) + j * C
        keep = ww.broadcast_to(cols[None, :] < k.rows, (R, C))
        if defect != "not causal":
            keep = keep & (cols[None, :] <= rows[:, None])
        s = ww.where(keep, s, float("-inf"))
        new_top = ww.maximum(top, ww.max(s, axis=1))
        safe = ww.where(new_top == float("-inf"), 0.0, new_top)
        p = ww.exp2(s - safe[:, None])
        rescale = ww.exp2(top - safe)
        total = total * rescale + ww.sum(p, axis=1)
        if defect != "no rescale":
            acc = acc * rescale[:, None]
        acc = ww.mma_AB(acc, ww.cast(p, v.dtype), vt)
        top = new_top
    ww.store(o, (m, 0), acc / ww.where(total == 0.0, 1.0, total)[:, None])


def histogram(x, out, *, N=8):
    m = ww.grid(ww.cdiv(x.cols, N))
    ww.atomic_add(out, (0,), ww.load(x, (m,), ww.rv[x.dtype, N]))


def negative_branch(x, out):
    ww.grid(1)
    t = ww.load(x, (0,), ww.rv[f32, 8])
    if ww.sum(t) > 0.0:
        ww.store(out, (0,), t)
    else:
        ww.store(out, (0,), -t)


def flags(x, out, *, N=8):
    ww.grid(1)
    t = ww.load(x, (0,), ww.rv[f32, N])
    positive: bool_ = t * t - t > 0.0
    ww.store(out, (0,), ww.cast(positive, i32))
