"""Sums of NVIDIA tensor cores: all products of a group and the accumulator aligned to the largest, truncated, added.

The rule is MMA-Sim's (arXiv 2511.10909, section 4) with one correction read from an H200: a product with a
zero factor takes no part in choosing the exponent to which the terms are aligned, however large its other
factor is. That correction is assumed for Ampere and Ada, which were not measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.conformance.models.encodings import NO_EXPONENT, Parts, decode, scaled

Array = npt.NDArray[Any]

NAN = {"f32": 0x7FFFFFFF, "f16": 0x7FFF}


@dataclass(frozen=True)
class TensorCore:
    """`group` products are added at once, each term cut to `kept` fraction bits below the largest exponent.

    The sum is cut to `result_bits` fraction bits, or rounded to nearest even if the accumulator is f16.
    """

    group: int
    kept: int
    result_bits: int = 23
    accumulator: str = "f32"
    zeros_align: bool = False

    def add(self, a: Parts, b: Parts, c: Array) -> Array:
        """Bits of c + sum of products along the last axis."""
        acc = decode(self.accumulator, c)
        nothing = -126.0 if self.zeros_align else NO_EXPONENT
        left, right = (x.with_zeros_at(nothing) for x in (a, b))
        exponents = np.concatenate([left.exponent + right.exponent, acc.with_zeros_at(-126.0).exponent[..., None]], -1)
        terms = np.concatenate([left.significand * right.significand, acc.significand[..., None]], -1)
        top = exponents.max(axis=-1)
        steps = np.trunc(scaled(terms, self.kept + exponents - top[..., None])).sum(axis=-1)
        with np.errstate(invalid="ignore"):
            special = (a.value * b.value).sum(axis=-1) + acc.value
        return self._encode(scaled(steps, top - self.kept), special)

    def _encode(self, total: Array, special: Array) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):
            half = self.accumulator == "f16"
            rounded = total.astype(np.float16) if half else cut(total, self.result_bits).astype(np.float32)
            result = np.where(np.isfinite(special), rounded, special).astype(rounded.dtype)
        bits = f"u{result.dtype.itemsize}"
        return np.where(np.isnan(special), NAN[self.accumulator], result.view(bits)).astype(bits)


def cut(x: Array, fraction_bits: int) -> Array:
    """Rounded towards zero to a format with the exponents of f32."""
    step = np.maximum(np.frexp(x)[1] - 1, -126) - fraction_bits
    return np.asarray(np.ldexp(np.trunc(np.ldexp(x, -step)), step))
