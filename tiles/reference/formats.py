"""Rounding to every float format in every named rounding, and the casts of the language, exactly.

Values are rounded as float64, in which each format of the language is exact; the storage conversion that
follows is then exact too. Overflow under a directed rounding is IEEE 754's: a rounding that points away
from infinity stops at the largest finite value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import DType, bool_, f32

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Format:
    """A binary float format: explicit fraction bits, exponent of the smallest normal, largest finite value."""

    mantissa: int
    min_exponent: int
    largest: float
    has_inf: bool
    has_negative_zero: bool

    @property
    def tiny(self) -> float:
        """The smallest subnormal: the spacing around 0."""
        return 2.0 ** (self.min_exponent - self.mantissa)

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of rounding a normal value to nearest."""
        return 2.0 ** -(self.mantissa + 1)


@functools.cache
def format_of(dtype: DType) -> Format:
    """The parameters of a float dtype."""
    smallest = float(ml_dtypes.finfo(dtype.numpy).smallest_normal)  # type: ignore[no-untyped-call]
    min_exponent = int(np.frexp(smallest)[1]) - 1
    return Format(dtype.mantissa, min_exponent, float(dtype.max), dtype.has_inf, not dtype.name.endswith("fnuz"))


def _nearest_away(steps: Array) -> Array:
    whole = np.trunc(steps)
    return np.asarray(whole + np.copysign(np.abs(steps - whole) >= 0.5, steps))


TO_INTEGER: dict[str, Callable[[Array], Array]] = {
    "rne": np.rint,
    "rtz": np.trunc,
    "rta": _nearest_away,
    "rtp": np.ceil,
    "rtn": np.floor,
}


def spacing_exponent(x: Array, fmt: Format) -> Array:
    """log2 of the distance between neighbours of the format at |x| (of its subnormals around 0)."""
    exponent = np.frexp(x)[1] - 1
    return np.asarray(np.maximum(exponent, fmt.min_exponent) - fmt.mantissa)


def round_to(x: Array, dtype: DType, rounding: str = "rne", *, saturate: bool = False) -> Array:
    """float64 `x` rounded to a value of `dtype`, still as float64."""
    if dtype == f32 and rounding == "rne" and not saturate:
        return x.astype(np.float32).astype(np.float64)  # the processor's own conversion is this rounding
    fmt = format_of(dtype)
    step = spacing_exponent(x, fmt)
    rounded = np.ldexp(TO_INTEGER[rounding](np.ldexp(x, -step)), step)
    rounded = np.where(np.abs(rounded) > fmt.largest, _overflow(x, fmt, rounding, saturate), rounded)
    return rounded if fmt.has_negative_zero else rounded + 0.0  # -0 + 0 is +0


def _overflow(x: Array, fmt: Format, rounding: str, saturate: bool) -> Array:
    largest = np.copysign(fmt.largest, x)
    if saturate:
        return largest
    beyond = np.copysign(np.inf, x) if fmt.has_inf else np.full_like(x, np.nan)
    stops = {"rtz": np.isfinite(x), "rtp": np.isfinite(x) & (x < 0), "rtn": np.isfinite(x) & (x > 0)}
    return np.where(stops[rounding], largest, beyond) if rounding in stops else beyond


def widen(x: Array) -> Array:
    """A float tile as float64: exact for every format."""
    return np.asarray(x.astype(np.float64))


def narrow(x: Array, dtype: DType) -> Array:
    """float64 rounded to nearest even and stored as `dtype`."""
    return store_as(round_to(x, dtype), dtype)


def store_as(x: Array, dtype: DType) -> Array:
    """float64 values of `dtype` in its storage type: exact, since they are already rounded."""
    return np.asarray(x.astype(dtype.numpy))


def cast(x: Array, source: DType, target: DType, rounding: str, saturate: bool) -> Array:
    """The language's cast; see `warpwave.tiles.language.elementwise.cast`."""
    if target == bool_:
        return np.asarray(widen(x) != 0 if source.is_float else x != 0)
    if target.is_float:
        wide = widen(x) if source.is_float else integer_to_odd(x)
        return store_as(round_to(wide, target, rounding, saturate=saturate), target)
    if source.is_float:
        return float_to_integer(widen(x), target, rounding)
    return np.asarray((clip_integer(x, target) if saturate else x).astype(target.numpy))


def float_to_integer(x: Array, target: DType, rounding: str) -> Array:
    """Rounded, limited to the range of `target`; NaN gives 0."""
    whole = TO_INTEGER[rounding](x)
    inside = (whole >= target.min) & (whole < float(target.max) + 1)
    result = np.where(inside, whole, 0).astype(np.int64)
    beyond = np.where(whole > 0, target.max, np.where(whole < 0, target.min, 0))
    return np.asarray(np.where(inside, result, beyond).astype(target.numpy))


def clip_integer(x: Array, target: DType) -> Array:
    """Integers limited to the range of `target`."""
    return np.clip(x.astype(np.int64), target.min, target.max)


def integer_to_odd(x: Array) -> Array:
    """Integers as float64, those beyond 2**53 rounded to odd so that a second rounding gives the right result."""
    whole = x.astype(np.int64)
    high, low = (whole >> 32) << 32, whole & 0xFFFFFFFF
    return add_to_odd(high.astype(np.float64), low.astype(np.float64))


def add_to_odd(a: Array, b: Array) -> Array:
    """a + b in float64 rounded to odd: a later rounding to a shorter format is then the exact sum's.

    Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
    odd", IEEE Trans. Computers 57 (2008). The error term is Knuth's 2Sum.
    """
    total = np.asarray(a + b)
    part = total - a
    error = (a - (total - part)) + (b - part)
    bits = np.ascontiguousarray(total).view(np.int64).reshape(total.shape)
    even = (bits & 1) == 0
    fix = even & (error != 0) & np.isfinite(total)
    return np.where(fix, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total)
