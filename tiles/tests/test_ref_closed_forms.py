"""Closed bounds against NumPy's own f32: they hold, and what a defect would do lies far outside."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from warpwave.tiles.dtypes import bf16, f32, fp8e4m3
from warpwave.tiles.reference import Numerics
from warpwave.tiles.reference.closed_forms import attention_bound, product_bound

U = 2.0**-24


def numbers(*shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(ml_dtypes.bfloat16)


def wide(x):
    return x.astype(np.float64)


def test_the_bound_of_a_product_is_the_contracts():
    a, b = numbers(20, 40, seed=7), numbers(20, 40, seed=8)
    exact, size = wide(a) @ wide(b).T, abs(wide(a)) @ abs(wide(b)).T
    bound = product_bound(exact, size, 40, bf16, f32)
    got = np.zeros((20, 20), np.float32)
    for k in range(40):
        got += a[:, k, None].astype(np.float32) * b[None, :, k].astype(np.float32)
    assert (np.abs(got - exact) <= bound).all()
    assert (bound <= 41 * 2 * U * size).all()
    assert (np.abs(wide(got.astype(ml_dtypes.bfloat16)) - exact) <= product_bound(exact, size, 40, bf16, bf16)).all()
    coarse = product_bound(exact, size, 40, fp8e4m3, f32, Numerics(product_losses={"fp8e4m3": 2.0**-12}))
    assert (coarse > 1000 * bound).all()


def attention(q, k, v, tile):
    """In f32, tile by tile, as kernels do it; NumPy's functions are within an ulp."""
    one = np.float32
    out, total = np.zeros((len(q), v.shape[1]), one), np.zeros((len(q), 1), one)
    peak = np.full((len(q), 1), -np.inf, one)
    for first in range(0, len(k), tile):
        part = slice(first, first + tile)
        scores = (q.astype(one) @ k[part].astype(one).T) * one(np.log2(np.e) / np.sqrt(q.shape[1]))
        last, peak = peak, np.maximum(peak, scores.max(1, keepdims=True))
        powers, decay = np.exp2(scores - peak), np.exp2(last - peak)
        total = total * decay + powers.sum(1, keepdims=True, dtype=one)
        out = out * decay + powers.astype(v.dtype).astype(one) @ v[part].astype(one)
    return (out / total).astype(v.dtype)


@pytest.mark.parametrize("scale", [1, 6])
def test_the_bound_of_attention(scale):
    q, k, v = (numbers(n, 64, seed=s) for n, s in ((48, 1), (512, 2), (512, 3)))
    q = (q * ml_dtypes.bfloat16(scale)).astype(q.dtype)
    scores = wide(q) @ wide(k).T / 8
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    exact, size = weights @ wide(v), (abs(wide(q)) @ abs(wide(k)).T / 8).max(1, keepdims=True)
    bound = attention_bound(exact, weights @ abs(wide(v)), size, width=64, keys=512, tile=64, dtype=bf16)
    assert (np.abs(wide(attention(q, k, v, 64)) - exact) <= bound).all()
    assert (bound < 3 * 2.0**-9 * (abs(exact) + weights @ abs(wide(v)))).all()
    without_the_last = wide(attention(q, k[:-128], v[:-128], 64))
    assert (np.abs(without_the_last - exact) > bound).mean() > 0.15
