"""A second model of the float formats, by table and rational arithmetic, to test the first one against."""

from __future__ import annotations

import bisect
import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from warpwave.tiles.dtypes import DType

# name: (exponent bits, fraction bits, bias, finite-only). From the OCP 8-bit floating point specification 1.0
# (e4m3, e5m2), IEEE 754 (f16), and Noune et al., arXiv 2206.02915 (the FNUZ forms).
LAYOUT = {
    "fp8e4m3": (4, 3, 7, "nan at all ones"),
    "fp8e5m2": (5, 2, 15, "ieee"),
    "fp8e4m3fnuz": (4, 3, 8, "nan at -0"),
    "fp8e5m2fnuz": (5, 2, 16, "nan at -0"),
    "f16": (5, 10, 15, "ieee"),
    "bf16": (8, 7, 127, "ieee"),
    "f32": (8, 23, 127, "ieee"),
}


def decode(name: str, code: int) -> float:
    """The value of a code, from its fields."""
    exponent_bits, fraction_bits, bias, specials = LAYOUT[name]
    fraction = code & ((1 << fraction_bits) - 1)
    exponent = (code >> fraction_bits) & ((1 << exponent_bits) - 1)
    sign = -1.0 if code >> (exponent_bits + fraction_bits) else 1.0
    top = (1 << exponent_bits) - 1
    if specials == "nan at -0" and sign < 0 and exponent == 0 and fraction == 0:
        return math.nan
    if specials == "ieee" and exponent == top:
        return sign * math.inf if fraction == 0 else math.nan
    if specials == "nan at all ones" and exponent == top and fraction == (1 << fraction_bits) - 1:
        return math.nan
    if exponent == 0:
        return sign * math.ldexp(fraction, 1 - bias - fraction_bits)
    return sign * math.ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits)


@functools.cache
def magnitudes(name: str) -> list[float]:
    """All finite values from 0 up."""
    exponent_bits, fraction_bits, _, _ = LAYOUT[name]
    values = [decode(name, code) for code in range(1 << (exponent_bits + fraction_bits))]
    return [v for v in values if math.isfinite(v)]


def round_exact(x: Fraction, dtype: DType, rounding: str, saturate: bool) -> float:
    """The exact number `x` in a format whose values fit a table."""
    sign = -1.0 if x < 0 else 1.0
    magnitude = _round_magnitude(abs(x), dtype.name, _for_magnitude(rounding, sign))
    if magnitude is None:
        largest = magnitudes(dtype.name)[-1]
        beyond = math.inf if LAYOUT[dtype.name][3] == "ieee" else math.nan
        return sign * (largest if saturate else beyond)
    if magnitude == 0 and "fnuz" in dtype.name:
        return 0.0
    return sign * magnitude


def _for_magnitude(rounding: str, sign: float) -> str:
    if rounding in ("rtp", "rtn"):
        return "up" if (rounding == "rtp") == (sign > 0) else "rtz"
    return rounding


def _round_magnitude(x: Fraction, name: str, rounding: str) -> float | None:
    """None for overflow, which is judged as if the format went on."""
    table = magnitudes(name)
    above = bisect.bisect_left(table, x)
    if above < len(table) and table[above] == x:
        return table[above]
    low = table[above - 1]
    step = Fraction(table[-1]) - Fraction(table[-2])
    high = Fraction(table[above]) if above < len(table) else Fraction(table[-1]) + step
    up = _goes_up(x - Fraction(low), high - x, above - 1, rounding)
    if rounding in ("rne", "rta") and x >= high:
        up = True
    if not up:
        return low
    return float(high) if above < len(table) else None


def _goes_up(below: Fraction, above: Fraction, low_index: int, rounding: str) -> bool:
    if rounding in ("rtz", "up"):
        return rounding == "up"
    if below != above:
        return below > above
    return rounding == "rta" or low_index % 2 == 1


def model_cast(x: np.ndarray, dtype: DType, rounding: str = "rne", saturate: bool = False) -> np.ndarray:
    """The cast of each element of a float array."""
    return np.array([_cast_one(float(v), dtype, rounding, saturate) for v in x.ravel()]).reshape(x.shape)


def _cast_one(x: float, dtype: DType, rounding: str, saturate: bool) -> float:
    if math.isnan(x):
        return x
    if math.isinf(x):
        beyond = math.inf if LAYOUT[dtype.name][3] == "ieee" else math.nan
        return math.copysign(magnitudes(dtype.name)[-1] if saturate else beyond, x)
    if x == 0:
        return 0.0 if "fnuz" in dtype.name else x
    return round_exact(Fraction(x), dtype, rounding, saturate)


def round_f32(x: Fraction) -> Any:
    """An exact number as f32, nearest even: CPython's int / int is correctly rounded, so round once via odd."""
    if x == 0:
        return np.float32(0)
    sign, x = (-1 if x < 0 else 1), abs(x)
    exponent = max(math.floor(math.log2(x)) if 2.0**-1000 < x < 2.0**1000 else 0, -126)
    while x >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while exponent > -126 and x < Fraction(2) ** exponent:
        exponent -= 1
    steps = round(x / Fraction(2) ** (exponent - 23))  # Python rounds halves to even
    value = Fraction(steps) * Fraction(2) ** (exponent - 23)
    return np.float32(sign * math.inf) if value >= Fraction(2) ** 128 else np.float32(sign * float(value))
