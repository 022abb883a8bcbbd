"""Sums of AMD CDNA3 matrix cores; those of CDNA4 are assumed to be the same.

The rule is MMA-Sim's for CDNA3 (arXiv 2511.10909, `fused_dot_rd_add`): a group of products is aligned to its
largest and cut towards zero, then its sum and the accumulator are aligned and rounded down. f32 operands are
a chain of fused multiply-adds. Whether a zero factor takes part in the alignment is not known on this
hardware; as on the H200, it does not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.conformance.models.encodings import NO_EXPONENT, Parts, decode, scaled
from warpwave.tiles.reference.formats import add_to_odd

Array = npt.NDArray[Any]

KEPT, SUM_KEPT, ACCUMULATOR_KEPT = 24, 31, 24  # fraction bits of products, of their sum, of the accumulator
NAN = 0x7FC00000


@dataclass(frozen=True)
class MatrixCore:
    """`group` products are added at once; with `halves`, even and odd ones apart, and far accumulators are lost."""

    group: int
    halves: bool = False
    zeros_align: bool = False

    def add(self, a: Parts, b: Parts, c: Array) -> Array:
        """Bits of c + sum of products along the last axis."""
        nothing = -126.0 if self.zeros_align else NO_EXPONENT
        left, right = (x.with_zeros_at(nothing) for x in (a, b))
        terms, exponents = left.significand * right.significand, left.exponent + right.exponent
        total, top = self._products(terms, exponents)
        acc = decode("f32", c)
        at = acc.with_zeros_at(-126.0).exponent
        both = np.maximum(top, at)
        addend = np.floor(scaled(acc.significand, ACCUMULATOR_KEPT + at - both))
        if self.halves:
            addend = np.where(at >= both - 25, addend, 0.0)
        sum_ = np.floor(scaled(total, SUM_KEPT + top - both))
        steps = sum_ + np.ldexp(addend, SUM_KEPT - ACCUMULATOR_KEPT)
        return _encode(scaled(steps, both - SUM_KEPT), a.value, b.value, acc.value)

    def _products(self, terms: Array, exponents: Array) -> tuple[Array, Array]:
        if not self.halves:
            return _aligned(terms, exponents)
        parts = [_aligned(terms[..., i::2], exponents[..., i::2]) for i in (0, 1)]
        top = np.maximum(parts[0][1], parts[1][1])
        floors = [np.floor(scaled(s, KEPT + e - top)) for s, e in parts]
        return np.ldexp(floors[0] + floors[1], -KEPT), top


def _aligned(terms: Array, exponents: Array) -> tuple[Array, Array]:
    """The sum of terms cut towards zero at KEPT bits below the largest exponent, and that exponent."""
    top = exponents.max(axis=-1)
    steps = np.trunc(scaled(terms, KEPT + exponents - top[..., None])).sum(axis=-1)
    return np.ldexp(steps, -KEPT), top


def _encode(total: Array, a: Array, b: Array, c: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        products = a * b
        special = products.sum(axis=-1) + c
        up, down = (products >= 2.0**128).any(axis=-1), (products <= -(2.0**128)).any(axis=-1)
        result = np.where(up, np.inf, np.where(down, -np.inf, total))
        result = np.where(up & down, np.nan, result)
        result = np.where(np.isfinite(special), result, special).astype(np.float32)
    return np.where(np.isnan(result), NAN, result.view(np.uint32)).astype(np.uint32)


@dataclass(frozen=True)
class FusedChain:
    """One fused multiply-add after the other, as `v_mfma_f32_*_f32`."""

    group: int = 1

    def add(self, a: Parts, b: Parts, c: Array) -> Array:
        """Bits of a fused a * b + c; the product of two f32 is exact in float64."""
        with np.errstate(invalid="ignore", over="ignore"):
            acc = c.astype(np.uint32).view(np.float32).astype(np.float64)
            result = add_to_odd(a.value[..., 0] * b.value[..., 0], acc).astype(np.float32)
        return np.where(np.isnan(result), NAN, result.view(np.uint32)).astype(np.uint32)
