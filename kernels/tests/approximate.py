"""The kernels' formulas by running error analysis: what their roundings may lose, before that to the output's dtype.

Sums are taken to add their terms one by one, and rows to be read in the narrowest tiles of any test.
"""

from __future__ import annotations

import math

import numpy as np

from warpwave.tiles.dtypes import BY_NUMPY
from warpwave.tiles.reference import CONTRACT
from warpwave.tiles.reference.running_error import Approx, gamma

U = 2.0**-24
NARROWEST = 8
RESCALED = U + 2 * U * CONTRACT.functions["exp2"].ulps  # a product with a power of 2, and that power


def product(a, b, depth=None):
    """Exact products, added one by one."""
    a, b = (x if isinstance(x, Approx) else Approx.of(x) for x in (a, b))
    spread = a.error @ b.size + np.abs(a.value) @ b.error
    lost = gamma(a.value.shape[-1] if depth is None else depth, U) * (a.size @ b.size)
    return Approx(a.value @ b.value, spread + lost)


def activated(x, name, value, slope):
    """A function that is nowhere steeper than `slope`."""
    return x.function(name, value, slope * x.error)


def _powers(exponent, hidden):
    """2^(exponent - the largest), each rescaled with every tile, and their sum.

    The exponents of a power and of its rescalings are differences of the same numbers on the way down to the last
    maximum, which cancels: together their roundings are at most one of the whole difference.
    """
    peak = np.where(hidden, -np.inf, exponent.value).max(-1, keepdims=True, initial=-np.inf)
    peak = np.where(np.isfinite(peak), peak, 0)
    shifted = Approx(np.where(hidden, 0, exponent.value - peak), np.where(hidden, 0, exponent.error)).rounded()
    count = hidden.shape[-1]
    powers = shifted.exp2().blurred(-(-count // NARROWEST) * RESCALED).moved(lambda x: np.where(hidden, 0, x))
    total = powers.sum(-1, count, keepdims=True)
    empty = total.value == 0
    return powers, peak, Approx(np.where(empty, 1, total.value), np.where(empty, 0, total.error))


def softmax(x):
    x = np.asarray(x).astype(np.float64)
    usable = np.isfinite(x)
    x = np.where(usable, x, 0)
    peak = np.where(usable, x, -np.inf).max(-1, keepdims=True, initial=-np.inf)
    peak = np.where(np.isfinite(peak), peak, 0)
    powers, _, total = _powers((Approx.of(x) - peak) * Approx.of(math.log2(math.e)).rounded(), ~usable)
    return powers * (1 / total)


def rmsnorm(x, weight=None, eps=1e-6):
    x, width = Approx.of(x), x.shape[-1]
    y = x * ((x * x).sum(-1, width, keepdims=True) / width + eps).rsqrt()
    return y if weight is None else y * weight


def layer_statistics(x, eps=1e-5, exact_sum=False):
    """What a row's mean leaves, the mean, and the inverse deviation."""
    x, width = Approx.of(x), x.shape[-1]
    mean = x.sum(-1, 0 if exact_sum else width, keepdims=True) / width
    centred = x - mean
    return centred, mean, ((centred * centred).sum(-1, width, keepdims=True) / width + eps).rsqrt()


def layernorm(x, weight=None, bias=None, **options):
    centred, _, rstd = layer_statistics(x, **options)
    y = centred * rstd
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def rotate(x, cos, sin, interleaved):
    half = x.shape[-1] // 2
    places = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(0, half), slice(half, None))
    first, second = (Approx.of(x[..., p]) for p in places)
    value, error = np.empty((2, *x.shape))
    for place, part in zip(places, (first * cos - second * sin, second * cos + first * sin), strict=True):
        value[..., place], error[..., place] = part.value, part.error
    return Approx(value, error)


def attention(q, k, v, *, causal=False, scale=None):
    """Output and logarithm of the softmax denominators; powers are rounded to the dtype of v."""
    group, (queries, keys), kind = q.shape[1] // k.shape[1], (q.shape[2], k.shape[2]), BY_NUMPY[v.dtype]
    factor = math.log2(math.e) / math.sqrt(q.shape[3]) if scale is None else math.log2(math.e) * scale
    scores = product(q, np.repeat(k, group, 1).swapaxes(-1, -2)) * Approx.of(factor).blurred(3 * U)
    hidden = np.zeros((queries, keys), bool)
    if causal:
        hidden = np.arange(keys)[None, :] > np.arange(queries)[:, None] + keys - queries
    powers, peak, total = _powers(scores, np.broadcast_to(hidden, scores.value.shape))
    out = product(powers.rounded(kind), np.repeat(v, group, 1)) * (1 / total)
    return out, ((total.log2() + peak) * Approx.of(math.log(2)).rounded()).moved(lambda x: x[..., 0])
