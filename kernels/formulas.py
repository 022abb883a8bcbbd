"""The kernels' formulas by running error analysis: what they may lose before the result is rounded to its dtype.

Sums are taken to add their terms one by one, and rows to be read in tiles of 8: no kernel loses more.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import BY_NUMPY, f32
from warpwave.tiles.reference import CONTRACT
from warpwave.tiles.reference.formats import format_of
from warpwave.tiles.reference.running_error import Approx, gamma

Array = npt.NDArray[Any]
U = format_of(f32).unit_roundoff
NARROWEST = 8
RESCALED = U + 2 * U * CONTRACT.functions["exp2"].ulps  # a product with a power of 2, and that power


def product(left: Any, right: Any) -> Approx:
    """A matrix product: exact products, added one by one."""
    a, b = (x if isinstance(x, Approx) else Approx.of(x) for x in (left, right))
    spread = a.error @ b.size + np.abs(a.value) @ b.error
    lost = gamma(a.value.shape[-1], U) * (a.size @ b.size)
    return Approx(a.value @ b.value, spread + lost)


def activated(x: Approx, name: str, value: Array, slope: float) -> Approx:
    """A function that is nowhere steeper than `slope`."""
    return x.function(name, value, slope * x.error)


def _powers(exponent: Approx, hidden: Array) -> tuple[Approx, Array, Approx]:
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


def softmax(x: Array) -> Approx:
    """Of rows, elements of -inf being 0; what rows without a finite maximum give is left open."""
    x = np.asarray(x).astype(np.float64)
    usable = np.isfinite(x)
    x = np.where(usable, x, 0)
    peak = np.where(usable, x, -np.inf).max(-1, keepdims=True, initial=-np.inf)
    peak = np.where(np.isfinite(peak), peak, 0)
    powers, _, total = _powers((Approx.of(x) - peak) * Approx.of(math.log2(math.e)).rounded(), ~usable)
    return powers * (1 / total)


def rmsnorm(rows: Array, weight: Array | None = None, eps: float = 1e-6) -> Approx:
    """Rows over the root of their mean square."""
    x, width = Approx.of(rows), rows.shape[-1]
    y: Approx = x * ((x * x).sum(-1, width, keepdims=True) / width + eps).rsqrt()
    return y if weight is None else y * weight


def layer_statistics(rows: Array, eps: float = 1e-5, exact_sum: bool = False) -> tuple[Approx, Approx, Approx]:
    """What a row's mean leaves, the mean, and the inverse deviation; `exact_sum` of numbers that add without error."""
    x, width = Approx.of(rows), rows.shape[-1]
    mean = x.sum(-1, 0 if exact_sum else width, keepdims=True) / width
    centred = x - mean
    return centred, mean, ((centred * centred).sum(-1, width, keepdims=True) / width + eps).rsqrt()


def layernorm(x: Array, weight: Array | None = None, bias: Array | None = None, **options: Any) -> Approx:
    """Rows without their mean, over their deviation."""
    centred, _, rstd = layer_statistics(x, **options)
    y = centred * rstd
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def rotate(x: Array, cos: Array, sin: Array, interleaved: bool) -> Approx:
    """Pairs turned by their angles."""
    half = x.shape[-1] // 2
    places = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(0, half), slice(half, None))
    first, second = (Approx.of(x[..., p]) for p in places)
    value, error = np.empty((2, *x.shape))
    for place, part in zip(places, (first * cos - second * sin, second * cos + first * sin), strict=True):
        value[..., place], error[..., place] = part.value, part.error
    return Approx(value, error)


def attention(
    q: Array, k: Array, v: Array, *, causal: bool = False, scale: float | None = None
) -> tuple[Approx, Approx]:
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
