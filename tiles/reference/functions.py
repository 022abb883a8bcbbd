"""The elementwise functions: floats in float64 (each domain rounds its own way), integers with wrap-around."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.reference.formats import add_to_odd

Array = npt.NDArray[Any]
Function = Callable[..., Array]

_erf = np.frompyfunc(math.erf, 1, 1)
_erfc = np.frompyfunc(math.erfc, 1, 1)


def erf(x: Array) -> Array:
    """The error function."""
    return np.asarray(_erf(x), np.float64)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + np.exp(-x))


def silu(x: Array) -> Array:
    """x * sigmoid(x): NaN at -inf, as inf * 0."""
    return x * sigmoid(x)


def gelu(x: Array) -> Array:
    """x * Phi(x), without the cancellation of 1 + erf: NaN at -inf, as inf * 0."""
    return 0.5 * x * np.asarray(_erfc(-x * math.sqrt(0.5)), np.float64)


def gelu_tanh(x: Array) -> Array:
    """x/2 * (1 + tanh(u)), which is x * sigmoid(2u) without cancellation: NaN at -inf."""
    return x * sigmoid(2.0 * math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x))


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c: the product of two f32 is exact in float64, the sum is rounded to odd."""
    return add_to_odd(a * b, c)


def maximum(a: Array, b: Array) -> Array:
    """IEEE 754-2019 maximum: NaN propagates, +0 is above -0."""
    return _ordered_zero(np.maximum(a, b), a, b, positive=True)


def minimum(a: Array, b: Array) -> Array:
    """IEEE 754-2019 minimum: NaN propagates, -0 is below +0."""
    return _ordered_zero(np.minimum(a, b), a, b, positive=False)


def _ordered_zero(result: Array, a: Array, b: Array, *, positive: bool) -> Array:
    first = np.signbit(a) != positive
    return np.where((a == 0) & (b == 0), np.where(first, a, b), result)


def ignoring_nan(function: Function) -> Function:
    """`function` of two floats, but the other one where one is NaN."""

    def chosen(a: Array, b: Array) -> Array:
        return np.where(np.isnan(a), b, np.where(np.isnan(b), a, function(a, b)))

    return chosen


def extreme(name: str, nan: str) -> Function:
    """`max` or `min` of floats under a NaN rule."""
    function = maximum if name == "max" else minimum
    return function if nan == "propagate" else ignoring_nan(function)


# Functions whose float64 result is, once rounded, the exact result rounded once: float64 has more than
# 2p + 2 bits of every format's p (Figueroa, "When is double rounding innocuous?", 1995); fma rounds to odd.
EXACT: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "fma": fma,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "neg": np.negative,
    "abs": np.abs,
    "relu": lambda x: maximum(x, np.zeros_like(x)),
}

TRANSCENDENTAL: dict[str, Function] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "rcp": lambda x: 1.0 / x,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "erf": erf,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu,
}

FLOAT: dict[str, Function] = {**EXACT, **TRANSCENDENTAL}

INTEGER: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0),
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "max": np.maximum,
    "min": np.minimum,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
}

COMPARE: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
