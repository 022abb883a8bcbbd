"""The operand formats of matrix units: codes to significand and exponent, the way the units see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

NO_EXPONENT = -(10.0**6)


@dataclass(frozen=True)
class Encoding:
    """A binary format. `specials`: IEEE infinities and NaN, one NaN at the largest codes (fn), or at -0 (fnuz).

    `ignored` counts low fraction bits that the unit drops (tf32 and xf32 operands are f32 registers).
    """

    exponent_bits: int
    fraction_bits: int
    bias: int
    specials: Literal["ieee", "fn", "fnuz"]
    ignored: int = 0

    @property
    def sign_shift(self) -> int:
        """Position of the sign bit."""
        return self.exponent_bits + self.fraction_bits


ENCODINGS = {
    "f32": Encoding(8, 23, 127, "ieee"),
    "tf32": Encoding(8, 23, 127, "ieee", ignored=13),
    "f16": Encoding(5, 10, 15, "ieee"),
    "bf16": Encoding(8, 7, 127, "ieee"),
    "fp8e4m3": Encoding(4, 3, 7, "fn"),
    "fp8e5m2": Encoding(5, 2, 15, "ieee"),
    "fp8e4m3fnuz": Encoding(4, 3, 8, "fnuz"),
    "fp8e5m2fnuz": Encoding(5, 2, 16, "fnuz"),
}


@dataclass(frozen=True, eq=False)
class Parts:
    """Elements as significand * 2^exponent, |significand| < 2, and as `value`s with infinities and NaN.

    A subnormal keeps the exponent of the smallest normal, so its significand is below 1. A zero has no
    exponent of its own: see `with_zeros_at`.
    """

    significand: Array
    exponent: Array
    value: Array

    def with_zeros_at(self, exponent: float) -> Parts:
        """The same with this exponent for every zero."""
        return Parts(self.significand, np.where(self.significand == 0, exponent, self.exponent), self.value)

    def map(self, move: Callable[[Array], Array]) -> Parts:
        """Every part rearranged alike."""
        return Parts(move(self.significand), move(self.exponent), move(self.value))


def decode(name: str, codes: Array) -> Parts:
    """The parts of elements given as bits."""
    form = ENCODINGS[name]
    bits = codes.astype(np.int64) >> form.ignored << form.ignored
    fraction = bits & ((1 << form.fraction_bits) - 1)
    field = bits >> form.fraction_bits & ((1 << form.exponent_bits) - 1)
    sign = np.where(bits >> form.sign_shift & 1 == 1, -1.0, 1.0)
    significand = sign * ((field > 0) + np.ldexp(fraction.astype(np.float64), -form.fraction_bits))
    exponent = (np.maximum(field, 1) - form.bias).astype(np.float64)
    value = np.ldexp(significand, exponent.astype(np.int64))
    return Parts(significand, exponent, _with_specials(form, bits, field, fraction, sign, value))


def _with_specials(form: Encoding, bits: Array, field: Array, fraction: Array, sign: Array, value: Array) -> Array:
    full = field == (1 << form.exponent_bits) - 1
    if form.specials == "ieee":
        return np.where(full, np.where(fraction == 0, sign * np.inf, np.nan), value)
    nan = full & (fraction == (1 << form.fraction_bits) - 1)
    return np.where(nan if form.specials == "fn" else bits == 1 << form.sign_shift, np.nan, value)


def scaled(significand: Array, by: Array) -> Array:
    """significand * 2^by in float64; far below the last bit kept it is 0, as any truncation makes it."""
    return np.ldexp(significand, np.clip(by, -1000, 1000).astype(np.int64))
