"""The one comparison: a result against what the contract allows, and two machines' results against each other."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.reference import Estimate
from warpwave.tiles.reference.comparison import Comparison, errors, widen, worst_element

Array = npt.NDArray[Any]


class Level(enum.Enum):
    """How well a result agrees, best first."""

    BIT_EXACT = "bit-exact"
    WITHIN = "within contract"
    UNKNOWN = "unknown"
    VIOLATION = "violation"

    @property
    def rank(self) -> int:
        """0 is best."""
        return list(Level).index(self)


def worst(levels: list[Level]) -> Level:
    """The level of several results together."""
    return max(levels, key=lambda level: level.rank, default=Level.BIT_EXACT)


@dataclass(frozen=True)
class Verdict(Comparison):
    """How one output compares.

    `bit_exact` counts elements with the expected bits. `drift` is the mean of error / bound with its sign: truncation
    shows as a drift.
    """

    level: Level
    bit_exact: int
    drift: float


def same_bits(a: Array, b: Array) -> Array:
    """Which elements have the same bits; any NaN is one NaN, and -0 is not 0."""
    left, right = (np.asarray(x) for x in (a, b))
    if left.dtype.kind in "iub":
        return np.asarray(left == right)
    left, right = widen(left), widen(right)
    equal = (left == right) & (np.signbit(left) == np.signbit(right))
    return np.asarray(equal | (np.isnan(left) & np.isnan(right)))


def judge(output: str, got: Array, estimate: Estimate, exact: Array | None = None) -> Verdict:
    """`got` against the oracle's estimate; `exact`, if given, is what the bits should be.

    Where the bound is 0, zeros must also have the sign of `exact`.
    """
    value, bound = (np.asarray(x, np.float64) for x in (estimate.value, estimate.bound))
    bound = np.broadcast_to(bound, value.shape)
    wide = widen(got)
    error, ratio = errors(wide, value, bound)
    same = same_bits(got, exact) if exact is not None else error == 0
    if exact is not None:
        wrong_zero = (wide == 0) & (value == 0) & (bound == 0) & ~same
        ratio = np.where(wrong_zero, np.inf, ratio)
    return _verdict(output, wide, value, error, bound, ratio, same)


def between(output: str, a: Array, b: Array, estimate_a: Estimate, estimate_b: Estimate) -> Verdict:
    """Result `b` against result `a` of another target: their difference is explained by both bounds together."""
    left, right = widen(a), widen(b)
    with np.errstate(invalid="ignore"):  # equal infinities
        apart = np.abs(np.asarray(estimate_a.value) - np.asarray(estimate_b.value))
        bound = np.asarray(estimate_a.bound) + np.asarray(estimate_b.bound) + np.where(np.isnan(apart), 0.0, apart)
    bound = np.broadcast_to(bound, left.shape)
    error, ratio = errors(right, left, bound)
    return _verdict(output, right, left, error, bound, ratio, same_bits(a, b))


def _verdict(output: str, got: Array, want: Array, error: Array, bound: Array, ratio: Array, same: Array) -> Verdict:
    found = worst_element(got, want, error, bound, ratio)
    level = _level(found["beyond"], found["unknown"], got.size, bool(same.all()))
    return Verdict(output, **found, level=level, bit_exact=int(same.sum()), drift=_drift(error, bound))


def _level(beyond: int, unknown: int, elements: int, same: bool) -> Level:
    """Unknown only where nothing at all is known: one element that is known makes a comparison."""
    if beyond:
        return Level.VIOLATION
    if same:
        return Level.BIT_EXACT
    return Level.UNKNOWN if unknown == elements else Level.WITHIN


def _drift(error: Array, bound: Array) -> float:
    bounded = (bound > 0) & np.isfinite(bound) & np.isfinite(error)
    with np.errstate(over="ignore", invalid="ignore"):  # a violation beside the least bound, which only allows a sign
        return float((error[bounded] / bound[bounded]).mean()) if bounded.any() else 0.0
