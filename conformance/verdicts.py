"""The one comparison: a result against what the contract allows, and two machines' results against each other."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.reference import Estimate

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
class Verdict:
    """How one output compares.

    `bit_exact`, `beyond` and `unknown` count elements: with the expected bits, outside the bound, and those
    about which the contract says nothing. The worst element, whose error is the largest fraction `ratio` of
    its bound, is at `index`. `drift` is the mean of error / bound with its sign: truncation shows as a drift.
    """

    output: str
    level: Level
    elements: int
    bit_exact: int
    beyond: int
    unknown: int
    index: tuple[int, ...]
    got: float
    want: float
    error: float
    bound: float
    ratio: float
    drift: float

    def as_json(self) -> dict[str, Any]:
        """Plain values, with text for what JSON has no number for."""
        return {k: _plain(v) for k, v in asdict(self).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Level):
        return value.value
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def widen(x: Array) -> Array:
    """Any dtype of the language as float64."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return np.asarray(x).astype(np.float64)


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
    error, ratio = _errors(wide, value, bound)
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
    error, ratio = _errors(right, left, bound)
    return _verdict(output, right, left, error, bound, ratio, same_bits(a, b))


def _errors(got: Array, value: Array, bound: Array) -> tuple[Array, Array]:
    """Each element's error with its sign, and its size as a fraction of the bound."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        same = (got == value) | (np.isnan(got) & np.isnan(value))
        error = np.where(same, 0.0, got - value)
        error = np.where(np.isnan(error), np.inf, error)
        ratio = np.where(same, 0.0, np.where(bound > 0, np.abs(error) / bound, np.inf))
    return error, np.where(np.isinf(bound), 0.0, ratio)


def _verdict(output: str, got: Array, want: Array, error: Array, bound: Array, ratio: Array, same: Array) -> Verdict:
    if not got.size:
        return Verdict(output, Level.BIT_EXACT, 0, 0, 0, 0, (), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(ratio)), got.shape))
    beyond, unknown = int((ratio > 1).sum()), int(np.isinf(bound).sum())
    return Verdict(
        output,
        _level(beyond, unknown, got.size, bool(same.all())),
        elements=got.size,
        bit_exact=int(same.sum()),
        beyond=beyond,
        unknown=unknown,
        index=at,
        got=float(got[at]),
        want=float(want[at]),
        error=float(abs(error[at])),
        bound=float(bound[at]),
        ratio=float(ratio[at]),
        drift=_drift(error, bound),
    )


def _level(beyond: int, unknown: int, elements: int, same: bool) -> Level:
    """Unknown only where nothing at all is known: one element that is known makes a comparison."""
    if beyond:
        return Level.VIOLATION
    if same:
        return Level.BIT_EXACT
    return Level.UNKNOWN if unknown == elements else Level.WITHIN


def _drift(error: Array, bound: Array) -> float:
    bounded = (bound > 0) & np.isfinite(bound) & np.isfinite(error)
    return float((error[bounded] / bound[bounded]).mean()) if bounded.any() else 0.0
