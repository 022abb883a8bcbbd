"""Attention forward: exact softmax(q k^T) v in one pass over the keys, with the logarithm of its denominator."""

from __future__ import annotations

import math

import warpwave as ww
from warpwave import bf16, cdiv, f32, gl, i32, rt, rv, st
from warpwave.kernels.samples import array
from warpwave.kernels.shapes import expect_equal, fitting

LOG2E = math.log2(math.e)
TILE_WIDTH = ww.derived(lambda q, v: 32 * max(1, -(-max(q.shape[-1], v.shape[-1]) // 32)))
TILE_QUERIES = ww.derived(lambda q: fitting(q.shape[-2], 64, 128))


@ww.kernel
def attention(
    q: gl,
    k: gl,
    v: gl,
    o: gl,
    lse: gl[f32] | None = None,
    *,
    causal=False,
    scale=None,
    D=TILE_WIDTH,
    BQ=TILE_QUERIES,
    BK=64,
):
    """o[B, H, N, E] = softmax(scale q k^T) v for q[B, H, N, C], k[B, G, M, C] and v[B, G, M, E].

    H is a multiple of G: query heads share key heads in equal groups. C and E are at most D, the width of
    the tiles, which is their next multiple of 32 unless given. `scale` is positive; None stands for
    1 / sqrt(C). lse[B, H, N] receives the natural logarithm of each row's softmax denominator.

    `causal` aligns the last query with the last key: query i sees the keys up to i + M - N. A query that
    sees no key gives 0, and -inf in lse. Tensors may have any strides, so b, n, h, d storage is a view.
    """
    queries, keys = q.rows, k.rows
    _expect_shapes(q, k, v, o, lse, D)
    assert scale is None or scale > 0, f"scale must be positive, got {scale}"

    b, h, i = ww.grid(q.batch, q.depth, cdiv(queries, BQ))
    if causal:
        i = cdiv(queries, BQ) - 1 - i  # the blocks with most keys first
    g = h // (q.depth // k.depth)
    log2_scale = LOG2E / ww.sqrt(ww.cast(q.cols, f32)) if scale is None else LOG2E * scale
    q_tile = ww.load(q, (b, h, i, 0), rt[q.dtype, BQ, D])
    visible = keys - queries + 1 + i * BQ  # the keys that this block's first query sees, if causal
    whole = ww.clamp(visible, 0, keys) // BK if causal else keys // BK
    end = cdiv(ww.clamp(visible + (BQ - 1), 0, keys), BK) if causal else cdiv(keys, BK)

    state = ww.zeros(rt[f32, BQ, D]), ww.full(rv[f32, BQ], -math.inf), ww.zeros(rv[f32, BQ])
    for j in ww.pipeline(whole):  # every query of the block sees every key of these tiles
        k_tile = ww.load(k, (b, g, j, 0), st[k.dtype, BK, D])
        v_tile = ww.load(v, (b, g, j, 0), st[v.dtype, BK, D])
        scores = ww.mma_ABt(ww.zeros(rt[f32, BQ, BK]), q_tile, k_tile)
        state = _accumulate(state, scores, v_tile, log2_scale)
    for j in ww.pipeline(whole, end):
        k_tile = ww.load(k, (b, g, j, 0), st[k.dtype, BK, D])
        v_tile = ww.load(v, (b, g, j, 0), st[v.dtype, BK, D])
        scores = ww.mma_ABt(ww.zeros(rt[f32, BQ, BK]), q_tile, k_tile)
        if causal:
            scores = ww.causal_mask(scores, row=visible - 1, col=j * BK)
        else:
            scores = ww.where(ww.iota(rv[i32, BK])[None, :] < keys - j * BK, scores, -math.inf)
        state = _accumulate(state, scores, v_tile, log2_scale)

    out, peak, total = state
    out = ww.where((total == 0.0)[:, None], 0.0, out * (1.0 / total)[:, None])
    ww.store(o, (b, h, i, 0), out)
    if lse is not None:
        ww.store(lse, (b, h, i), (peak + ww.log2(total)) * math.log(2))


def _accumulate(state, scores, v_tile, log2_scale):
    """One step of the online softmax: output, maximum (in powers of two) and denominator after these keys."""
    out, peak, total = state
    last, peak = peak, ww.maximum(peak, ww.max(scores, axis=1, nan="ignore") * log2_scale, nan="ignore")
    base = ww.where(peak == -math.inf, 0.0, peak)  # no key seen yet: -inf - -inf would be NaN
    powers = ww.exp2(ww.fma(scores, log2_scale, -base[:, None]))  # a NaN score reaches the row through here
    decay = ww.exp2(last - base)
    out = ww.mma_AB(out * decay[:, None], ww.cast(powers, v_tile.dtype), v_tile)
    return out, peak, total * decay + ww.sum(powers, axis=1)


def _expect_shapes(q, k, v, o, lse, width):
    expect_equal("batch", q.batch, k.batch, v.batch, o.batch)
    expect_equal("number of query heads", q.depth, o.depth)
    expect_equal("number of key heads", k.depth, v.depth)
    ww.check(q.depth % k.depth == 0, "the number of query heads is no multiple of the number of key heads")
    expect_equal("number of queries", q.rows, o.rows)
    expect_equal("number of keys", k.rows, v.rows)
    expect_equal("head dimension of q and k", q.cols, k.cols)
    expect_equal("head dimension of v and o", v.cols, o.cols)
    ww.check(q.cols <= width, f"the head dimension of q is more than the tile width D={width}")
    ww.check(v.cols <= width, f"the head dimension of v is more than the tile width D={width}")
    if lse is not None:
        for extents in zip(lse.shape, q.shape[:-1], strict=True):
            expect_equal("shape of lse", *extents)


@attention.samples
def _samples(rng):
    for queries, keys, width, causal in ((150, 150, 64, False), (130, 200, 80, True), (90, 40, 64, True)):
        many = {name: array(rng, bf16, 1, 4, queries, width) for name in ("q", "o")}
        few = {name: array(rng, bf16, 1, 2, keys, width) for name in ("k", "v")}
        yield {**many, **few, "lse": array(rng, f32, 1, 4, queries), "causal": causal}
