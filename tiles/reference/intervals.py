"""Elementwise functions on bounded floats: values, and limits from how each function varies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import DType, f32
from warpwave.tiles.reference.accuracy import Allowance
from warpwave.tiles.reference.bounded import Bounded, any_of, certain, settle
from warpwave.tiles.reference.formats import add_to_odd, format_of, spacing_exponent
from warpwave.tiles.reference.functions import COMPARE, EXACT, FLOAT, TRANSCENDENTAL, extreme, maximum, minimum

Array = npt.NDArray[Any]
Limits = tuple[Array, Array]

# Where x * Phi(x), its tanh form and x * sigmoid(x) have their minimum; they fall before it and rise after it.
VALLEYS = {"gelu": -0.751791524693564, "gelu_tanh": -0.752461422199866, "silu": -1.278464542761074}
DECREASING = ("neg", "rsqrt", "rcp")


def elementwise(name: str, dtype: DType, operands: Sequence[Bounded], allowed: Mapping[str, Allowance]) -> Bounded:
    """A float function of operands of `dtype`, within its allowance and rounded to `dtype`."""
    if name in TRANSCENDENTAL:
        return _transcendental(name, operands[0], allowed[name]).rounded(dtype)
    value = np.asarray(EXACT[name](*(x.value for x in operands)))
    if all(x.exact for x in operands):
        return certain(value).rounded(dtype)
    low, high = _limits(name, operands)
    return _joined(value, _outward(low, high), operands).rounded(dtype)


def _joined(value: Array, limits: Limits, operands: Sequence[Bounded]) -> Bounded:
    """The result with `limits` where an operand is unsure; certain operands give a certain result."""
    unsure = any_of([x.unsure for x in operands])
    nan = any_of([np.isnan(x.low) for x in operands])
    value = np.where(nan, np.nan, value)
    loose = unsure & ~nan
    low, high = (np.where(loose, limit, value) for limit in limits)
    lost = loose & any_of([np.isnan(low), np.isnan(high), *(x.anything for x in operands)])
    return settle(value, low, high, lost)


def _outward(low: Array, high: Array) -> Limits:
    """Covers the rounding of float64 itself."""
    return np.nextafter(low, -np.inf), np.nextafter(high, np.inf)


# -- limits of the correctly rounded operations -------------------------------------------------------


def _limits(name: str, operands: Sequence[Bounded]) -> Limits:
    if name in _LIMITS:
        return _LIMITS[name](*operands)
    (x,) = operands
    low, high = EXACT[name](x.low), EXACT[name](x.high)
    return (high, low) if name in DECREASING else (low, high)


def _add(a: Bounded, b: Bounded) -> Limits:
    return a.low + b.low, a.high + b.high


def _sub(a: Bounded, b: Bounded) -> Limits:
    return a.low - b.high, a.high - b.low


def _corners(function: Callable[[Array, Array], Array], a: Bounded, b: Bounded) -> Limits:
    corners = np.stack([function(x, y) for x in (a.low, a.high) for y in (b.low, b.high)])
    return corners.min(axis=0), corners.max(axis=0)


def _mul(a: Bounded, b: Bounded) -> Limits:
    if a is b:
        size = _abs(a)
        return size[0] * size[0], size[1] * size[1]
    return _corners(np.multiply, a, b)


def _div(a: Bounded, b: Bounded) -> Limits:
    low, high = _corners(np.divide, a, b)
    straddles = (b.low <= 0) & (b.high >= 0)
    return np.where(straddles, -np.inf, low), np.where(straddles, np.inf, high)


def _fma(a: Bounded, b: Bounded, c: Bounded) -> Limits:
    low, high = _mul(a, b)
    return add_to_odd(low, c.low), add_to_odd(high, c.high)


def _abs(x: Bounded) -> Limits:
    low, high = np.abs(x.low), np.abs(x.high)
    straddles = (x.low < 0) & (x.high > 0)
    return np.where(straddles, 0.0, np.minimum(low, high)), np.maximum(low, high)


_LIMITS: dict[str, Callable[..., Limits]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "fma": _fma,
    "abs": _abs,
}


# -- functions with an allowance ----------------------------------------------------------------------


SMALLEST_NORMAL = 2.0 ** format_of(f32).min_exponent


def _transcendental(name: str, x: Bounded, allowance: Allowance) -> Bounded:
    value = FLOAT[name](x.value)
    at_low, at_high = _evaluated(name, x.low, allowance), _evaluated(name, x.high, allowance)
    low, high = (at_high[0], at_low[1]) if name in DECREASING else (at_low[0], at_high[1])
    if name in VALLEYS:
        low, high = minimum(at_low[0], at_high[0]), maximum(at_low[1], at_high[1])
        bottom = _evaluated(name, np.asarray(VALLEYS[name]), allowance)[0]
        low = np.where((x.low < VALLEYS[name]) & (x.high > VALLEYS[name]), bottom, low)
    if name in ("rcp", "rsqrt"):
        straddles = x.unsure & (x.low <= 0) & (x.high >= 0)
        low, high = np.where(straddles, -np.inf, low), np.where(straddles, np.inf, high)
    nan = np.isnan(x.low)
    lost = ~nan & (x.anything | (x.unsure & (np.isnan(low) | np.isnan(high))))
    return settle(np.where(nan, np.nan, value), low, high, lost)


def _evaluated(name: str, x: Array, allowance: Allowance) -> Limits:
    """Least and greatest result that is allowed at `x`."""
    result = FLOAT[name](x)
    error = allowance.ulps * _ulp(result) + allowance.argument_ulps * _ulp(x)
    error = np.where((x == 0) | np.isinf(x) | np.isinf(result), 0.0, error + np.abs(result) * 2.0**-50)
    low, high = np.maximum(result - error, allowance.floor), result + error
    if allowance.flushes:
        low = np.where(np.abs(low) < SMALLEST_NORMAL, np.minimum(low, 0.0), low)
    return np.where(error == 0, result, low), np.where(error == 0, result, high)  # keeps -0


def _ulp(x: Array) -> Array:
    """The distance between f32 neighbours at |x|."""
    return np.ldexp(1.0, spacing_exponent(x, format_of(f32)))


# -- extremes and comparisons -------------------------------------------------------------------------


def extremes(name: str, nan: str, a: Bounded, b: Bounded) -> Bounded:
    """`max` or `min` of two floats."""
    function = extreme(name, nan)
    value, low, high = (function(getattr(a, p), getattr(b, p)) for p in ("value", "low", "high"))
    if a.exact and b.exact:
        return certain(value)
    if nan == "propagate":
        return _joined(value, (low, high), (a, b))
    return settle(value, low, high, np.zeros(low.shape, np.bool_))


def compare(name: str, a: Bounded, b: Bounded) -> Bounded:
    """A comparison of any dtype; unsure where the limits do not decide."""
    function = COMPARE[name]
    value = np.asarray(function(a.value, b.value))
    if a.exact and b.exact:
        return certain(value)
    if name == "ne":
        equal = compare("eq", a, b)
        return Bounded(~equal.value, ~equal.high, ~equal.low)
    low, high = _decided(name, a, b)
    unknown = any_of([a.anything & ~np.isnan(b.low), b.anything & ~np.isnan(a.low)])
    low, high = low & ~unknown, high | unknown
    return Bounded((value | low) & high, low, high)


def _decided(name: str, a: Bounded, b: Bounded) -> Limits:
    """Where the comparison is certainly true, and where it may be."""
    if name == "eq":
        return (a.low == b.high) & (a.high == b.low), (a.low <= b.high) & (b.low <= a.high)
    if name in ("gt", "ge"):
        return _decided({"gt": "lt", "ge": "le"}[name], b, a)
    function = COMPARE[name]
    return np.asarray(function(a.high, b.low)), np.asarray(function(a.low, b.high))


def select(condition: Bounded, a: Bounded, b: Bounded) -> Bounded:
    """`a` or `b`; both where the condition is unsure."""
    value = np.where(condition.value, a.value, b.value)
    if condition.exact and a.exact and b.exact:
        return certain(value)
    low, high = (np.where(condition.value, x, y) for x, y in ((a.low, b.low), (a.high, b.high)))
    unsure = condition.unsure
    floats = value.dtype.kind == "f"
    least, greatest = (minimum, maximum) if floats else (np.minimum, np.maximum)  # of floats -0 is below +0
    low, high = np.where(unsure, least(a.low, b.low), low), np.where(unsure, greatest(a.high, b.high), high)
    if not floats:
        return Bounded(value, low, high)
    both_nan = np.isnan(a.low) & np.isnan(b.low)
    return settle(value, low, high, unsure & np.isnan(low) & ~both_nan)
