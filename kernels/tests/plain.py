"""The kernels' answers in plain NumPy float64, written from their definitions; no code of the language."""

from __future__ import annotations

import math

import numpy as np

erf = np.vectorize(math.erf, otypes=[np.float64])


def wide(x):
    return np.asarray(x).astype(np.float64)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2))) if x.size else x


def silu(x):
    return x / (1 + np.exp(-x))


def relu(x):
    return np.maximum(x, 0)


def softmax(x):
    with np.errstate(invalid="ignore"):
        powers = np.exp(wide(x) - wide(x).max(-1, keepdims=True, initial=-np.inf))
        return powers / powers.sum(-1, keepdims=True)


def rmsnorm(x, weight=None, eps=1e-6):
    x = wide(x)
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return y if weight is None else y * wide(weight)


def layernorm(x, weight=None, bias=None, eps=1e-5):
    x = wide(x)
    centred = x - x.mean(-1, keepdims=True)
    y = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    return y * (1 if weight is None else wide(weight)) + (0 if bias is None else wide(bias))


def rotate(x, cos, sin, interleaved):
    x, half = wide(x), x.shape[-1] // 2
    first, second = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(0, half), slice(half, None))
    y = np.empty_like(x)
    y[..., first] = x[..., first] * wide(cos) - x[..., second] * wide(sin)
    y[..., second] = x[..., second] * wide(cos) + x[..., first] * wide(sin)
    return y


def attention(q, k, v, *, causal=False, scale=None):
    """Output and natural logarithm of the softmax denominators; 0 and -inf where a query sees no key."""
    q, k, v = wide(q), wide(k), wide(v)
    queries, keys, group = q.shape[2], k.shape[2], q.shape[1] // k.shape[1]
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = scale * np.einsum("bhnd,bhmd->bhnm", q, k)
    if causal:
        hidden = np.arange(keys)[None, :] > np.arange(queries)[:, None] + keys - queries
        scores = np.where(hidden, -np.inf, scores)
    peak = scores.max(-1, initial=-np.inf)
    powers = np.exp(scores - np.where(peak == -np.inf, 0, peak)[..., None])
    total = powers.sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.where(total[..., None] == 0, 0, np.einsum("bhnm,bhmd->bhnd", powers, v) / total[..., None])
        return out, peak + np.log(total)


def philox4x32_10(counter, key):
    """One block of four 32-bit words by Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC'11)."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & 0xFFFFFFFF, (p0 >> 32) ^ c3 ^ k1, p0 & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def kept(rows, cols, p, seed, offset):
    """The dropout mask by its definition: true where an element is kept."""
    low = 0xFFFFFFFF
    key, upper = (seed & low, (seed >> 32) & low), (offset & low, (offset >> 32) & low)
    bits = np.empty((rows, cols), np.int64)
    for r in range(rows):
        for c in range(cols):
            bits[r, c] = philox4x32_10((c // 4, r, *upper), key)[c % 4]
    signed = np.where(bits >= 2**31, bits - 2**32, bits)
    return signed >= round(p * 2**32) - 2**31
