"""Sums, products and matrix products of bounded floats, accumulated in any order.

A sum of exact terms x with n additions, each of which loses at most v relative to its result, is within
nv / (1 - nv) * sum|x| of the exact sum (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
section 4.2). It is exact where all partial sums are multiples of one unit and short enough for the format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import DType, f32
from warpwave.tiles.reference.accuracy import CONTRACT
from warpwave.tiles.reference.bounded import Bounded, settle
from warpwave.tiles.reference.contract import running_sum, total
from warpwave.tiles.reference.formats import format_of

Array = npt.NDArray[Any]
TF32_TINY, TF32_LARGEST = 2.0**-136, (2 - 2.0**-10) * 2.0**127


@dataclass(frozen=True)
class Terms:
    """What is known about the terms of sums: the exact sum, sum|x|, a unit that divides all, how many additions."""

    total: Bounded
    magnitude: Array
    unit: Array
    additions: Array | int


def lowest_bit(x: Bounded) -> Array:
    """The largest power of two that divides a certain element: inf for 0, and 0 if nothing is known."""
    mantissa, exponent = np.frexp(np.where(np.isfinite(x.value), x.value, 0.0))
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    bit = np.ldexp((digits & -digits).astype(np.float64), exponent - 53)
    return np.where(x.unsure, 0.0, np.where(digits == 0, np.inf, bit))


def _gamma(additions: Array | int, roundoff: float) -> Array:
    lost = np.asarray(additions, np.float64) * roundoff
    return np.where(lost < 1, lost / np.maximum(1 - lost, 2.0**-60), np.inf)


def addition_loss(dtype: DType = f32, roundoffs: float = CONTRACT.addition_roundoffs) -> float:
    """What an addition in `dtype` may lose, relative to its result."""
    return roundoffs * format_of(dtype).unit_roundoff


def accumulated(terms: Terms, dtype: DType, loss: float) -> Bounded:
    """All sums of finite terms that adding in `dtype` in any order may give, each losing `loss` of its result."""
    fmt = format_of(dtype)
    short = terms.magnitude <= terms.unit * min(2.0 ** (fmt.mantissa + 1), 2.0 / loss)
    representable = short & (terms.unit >= fmt.tiny)
    underflow = np.asarray(terms.additions) * np.where(terms.unit < fmt.tiny, fmt.tiny, 0.0)
    gamma = _gamma(terms.additions, loss + 2.0**-52)
    error = np.where(representable, 0.0, gamma * terms.magnitude + underflow)
    exact = terms.total
    overflow = (np.asarray(terms.additions) > 0) & ~(terms.magnitude + error <= fmt.largest)
    with np.errstate(invalid="ignore"):  # an infinite limit and an infinite error: an overflow, which settles it
        low, high = exact.low - error, np.where(error == 0, exact.high, exact.high + error)  # -0 + 0 is +0
    return settle(exact.value, low, high, overflow).rounded(dtype)


def _with_specials(finite: Bounded, special: Array, has_special: Array, loose: Array) -> Bounded:
    """A sum's limits, given the sum of its certain infinities and NaN, and whether an unsure term is unlimited."""
    loose = loose | finite.anything
    decided = has_special & (~loose | np.isnan(special))
    value, low, high = (np.where(decided, special, x) for x in (finite.value, finite.low, finite.high))
    return settle(value, low, high, loose & ~decided)


# -- sums along an axis -------------------------------------------------------------------------------


class Whole:
    """Sums over a whole axis."""

    def __init__(self, axis: int, extent: int) -> None:
        self.axis = axis
        self.additions: Array | int = extent - 1

    def total(self, x: Array) -> Array:
        """The sum."""
        return total(x, self.axis)

    def least(self, x: Array) -> Array:
        """The smallest term."""
        return np.asarray(x.min(axis=self.axis))


class Running:
    """Sums over each prefix (or suffix) of an axis."""

    def __init__(self, attrs: Any, shape: tuple[int, ...]) -> None:
        self.attrs = attrs
        self.additions: Array | int = np.maximum(self.total(np.ones(shape)) - 1, 0)

    def total(self, x: Array) -> Array:
        """The running sum."""
        return running_sum(x, self.attrs, np.dtype(np.float64))

    def least(self, x: Array) -> Array:
        """The smallest term so far."""
        axis, reverse = self.attrs["axis"], self.attrs["reverse"]
        x = np.flip(x, axis) if reverse else x
        if self.attrs["exclusive"]:
            first = np.full_like(np.take(x, [0], axis), np.inf)
            x = np.concatenate([first, np.delete(x, -1, axis)], axis)
        result = np.minimum.accumulate(x, axis=axis)
        return np.flip(result, axis) if reverse else result


def summed(x: Bounded, along: Whole | Running, loss: float) -> Bounded:
    """Sums of floats, accumulated in f32 in any order."""
    unlimited = ~np.isfinite(x.low) | ~np.isfinite(x.high)
    loose, special = unlimited & x.unsure, unlimited & ~x.unsure
    value, low, high = (np.where(unlimited, 0.0, p) for p in (x.value, x.low, x.high))
    finite = Bounded(value, low, high)
    parts = Bounded(along.total(value), along.total(low), along.total(high))
    terms = Terms(parts, along.total(finite.magnitude), along.least(lowest_bit(finite)), along.additions)
    sums = accumulated(terms, f32, loss)
    if not unlimited.any():
        return sums
    specials = along.total(np.where(special, x.value, 0.0))
    return _with_specials(sums, specials, along.total(special) > 0, along.total(loose) > 0)


# -- products along an axis ---------------------------------------------------------------------------


def multiplied(x: Bounded, axis: int, loss: float) -> Bounded:
    """Products of floats along an axis, accumulated in f32 in any order."""
    count = x.value.shape[axis] - 1
    value = x.value.prod(axis=axis)
    low, high = _product_limits(x, axis)
    largest = np.maximum(np.where(np.isinf(x.magnitude) & ~x.unsure, 1.0, x.magnitude), 1.0).prod(axis=axis)
    fmt = format_of(f32)
    gamma = _gamma(count, loss + 2.0**-52)
    size = np.maximum(np.abs(low), np.abs(high))
    error = np.where(np.isfinite(size), gamma * size, 0.0) + count * fmt.tiny * largest
    whole = (~x.unsure & (x.value == np.rint(x.value))).all(axis=axis) & (largest <= 2.0 ** (fmt.mantissa + 1))
    error = np.where(whole, 0.0, error)
    sure = ~x.unsure.any(axis=axis)
    nan = np.isnan(x.low).any(axis=axis)
    lost = (~(largest + error <= fmt.largest) & (count > 0)) | (~sure & (np.isnan(low) | np.isnan(high)))
    lost |= x.anything.any(axis=axis)
    infinite = np.isinf(x.low).any(axis=axis) | np.isinf(x.high).any(axis=axis)
    lost |= infinite & (_least_partial(x, axis) < fmt.tiny)  # 0 * inf in some order
    return settle(np.where(nan, np.nan, value), low - error, high + error, lost & ~nan).rounded(f32)


def _least_partial(x: Bounded, axis: int) -> Array:
    """The smallest size of a product of some of the terms that are not zero."""
    least = np.where(x.low * x.high > 0, np.minimum(np.abs(x.low), np.abs(x.high)), 0.0)
    return np.asarray(np.where(x.magnitude == 0, 1.0, np.minimum(least, 1.0)).prod(axis=axis))


def _product_limits(x: Bounded, axis: int) -> tuple[Array, Array]:
    lows, highs = np.moveaxis(x.low, axis, 0), np.moveaxis(x.high, axis, 0)
    low, high = lows[0], highs[0]
    for a, b in zip(lows[1:], highs[1:], strict=True):
        corners = np.stack([low * a, low * b, high * a, high * b])
        low, high = corners.min(axis=0), corners.max(axis=0)
    return low, high


# -- matrix products ----------------------------------------------------------------------------------


Smallest = tuple[float, float]


def matrix_product(acc: Bounded, a: Bounded, b: Bounded, loss: float, smallest: Smallest = (0.0, 0.0)) -> Bounded:
    """acc[M, N] + a[M, K] @ b[K, N]: exact products, accumulated in f32 in any order; see `accumulated`.

    Losses are as if no element of a, and none of b, were nearer to 0 than its `smallest`, unless it is 0.
    """
    unlimited = [~np.isfinite(x.low) | ~np.isfinite(x.high) for x in (acc, a, b)]
    if not any(mask.any() for mask in unlimited):
        return accumulated(_product_terms(acc, a, b, smallest), f32, loss)
    tame_acc, tame_a, tame_b = (_tamed(x, mask) for x, mask in zip((acc, a, b), unlimited, strict=True))
    finite = accumulated(_product_terms(tame_acc, tame_a, tame_b, smallest), f32, loss)
    has_special = _reaches(*unlimited)
    loose = has_special & _reaches(acc.unsure, a.unsure, b.unsure)
    nan = _reaches(*(np.isnan(x.low) for x in (acc, a, b))) | _opposed(acc, a, b)
    specials = np.where(nan, np.nan, np.where(loose, 0.0, acc.value + a.value @ b.value))
    return _with_specials(finite, specials, has_special, loose)


def _opposed(acc: Bounded, a: Bounded, b: Bounded) -> Array:
    """Where certain elements alone give NaN: 0 * inf, or infinities of both signs."""
    signs = [np.where(x.unsure | np.isnan(x.low), 0.0, np.sign(x.low)) for x in (acc, a, b)]
    infinite = [np.where(np.isinf(x.low), s, 0.0) for x, s in zip((acc, a, b), signs, strict=True)]
    zero = [~x.unsure & (x.low == 0) for x in (a, b)]
    undefined = zero[0].astype(float) @ np.abs(infinite[2]) + np.abs(infinite[1]) @ zero[1].astype(float)
    count = _infinities([np.abs(x) for x in signs], [np.abs(x) for x in infinite])
    return np.asarray((undefined > 0) | (np.abs(_infinities(signs, infinite)) < count))


def _infinities(signs: Sequence[Array], infinite: Sequence[Array]) -> Array:
    """The sum of the signs of infinite terms, from the signs of all operands and those of the infinite ones."""
    (_, sign_a, sign_b), (acc, a, b) = signs, infinite
    return np.asarray(acc + a @ sign_b + sign_a @ b - a @ b)


def _tamed(x: Bounded, unlimited: Array) -> Bounded:
    value, low, high = (np.where(unlimited, 0.0, p) for p in (x.value, x.low, x.high))
    return Bounded(value, low, high)


def _reaches(acc: Array, a: Array, b: Array) -> Array:
    """Which elements of the result a mask on the operands has a part in."""
    return np.asarray(acc | a.any(axis=1, keepdims=True) | b.any(axis=0, keepdims=True))


def _aligned_as(x: Bounded, smallest: float) -> Array:
    return np.where(x.magnitude == 0, 0.0, np.maximum(x.magnitude, smallest))


def _product_terms(acc: Bounded, a: Bounded, b: Bounded, smallest: Smallest) -> Terms:
    value = acc.value + a.value @ b.value
    magnitude = acc.magnitude + _aligned_as(a, smallest[0]) @ _aligned_as(b, smallest[1])
    spread = a.radius @ b.magnitude + np.abs(a.value) @ b.radius
    low, high = value - (acc.value - acc.low) - spread, value + (acc.high - acc.value) + spread
    unit = np.minimum(
        lowest_bit(acc), lowest_bit(a).min(axis=1, keepdims=True) * lowest_bit(b).min(axis=0, keepdims=True)
    )
    unit = np.where(np.isnan(unit), lowest_bit(acc), unit)  # no non-zero term on one side
    return Terms(Bounded(value, low, high), magnitude, unit, a.value.shape[1])


def tf32_operand(x: Bounded, relative: float) -> Bounded:
    """An f32 operand that the target may shorten to 10 fraction bits, with this relative error; or to infinity."""
    unit = lowest_bit(x)
    kept = (unit * 2.0**11 > x.magnitude) & (unit >= TF32_TINY)
    error = np.where(kept | ~np.isfinite(x.value), 0.0, x.magnitude * relative + TF32_TINY)
    if not error.any():
        return x
    low, high = x.low - error, x.high + error
    return Bounded(x.value, np.where(low < -TF32_LARGEST, -np.inf, low), np.where(high > TF32_LARGEST, np.inf, high))
