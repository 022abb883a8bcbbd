"""Numbers with certified limits: what a computation within the contract may give at each element."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import DType
from warpwave.tiles.reference.formats import round_to

Array = npt.NDArray[Any]
SMALLEST = float(np.nextafter(0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Bounded:
    """A tile of `value`s, each known to lie in [`low`, `high`].

    Floats are float64; integers and bools (False < True) are in their storage type. low == high, with one
    sign of zero, says that the element is certain. A float with limits (-inf, inf) may be anything, NaN
    included; only a certain NaN has NaN limits. A tile that is certain everywhere holds one array three times
    (`exact`).
    """

    value: Array
    low: Array
    high: Array

    @property
    def exact(self) -> bool:
        """Whether the whole tile is known to be certain."""
        return self.low is self.value and self.high is self.value

    @property
    def unsure(self) -> Array:
        """Which elements are not certain."""
        if self.exact:
            return np.zeros(self.value.shape, np.bool_)
        differs = self.low != self.high
        if self.low.dtype.kind == "f":
            differs = (differs | (np.signbit(self.low) != np.signbit(self.high))) & ~np.isnan(self.low)
        return np.asarray(differs)

    @property
    def anything(self) -> Array:
        """Which elements may be anything."""
        if self.low.dtype.kind != "f":
            return np.zeros(self.low.shape, np.bool_)
        return np.asarray(np.isneginf(self.low) & np.isposinf(self.high))

    @property
    def radius(self) -> Array:
        """Largest distance from the value: 0 where certain, inf where a limit is infinite.

        Where only the sign of a zero is not certain it is the smallest number, as 0 says that the sign is, too.
        """
        value, low, high = (x.astype(np.float64) for x in (self.value, self.low, self.high))
        with np.errstate(invalid="ignore"):  # an infinity minus itself, where the other limit or certainty decides
            return np.where(self.unsure, np.fmax(np.fmax(high - value, value - low), SMALLEST), 0.0)

    @property
    def magnitude(self) -> Array:
        """Largest absolute value."""
        return np.asarray(np.maximum(np.abs(self.low), np.abs(self.high)))

    def map(self, function: Callable[[Array], Array]) -> Bounded:
        """`function`, which moves elements or increases with them, applied to values and limits alike."""
        if self.exact:
            return certain(function(self.value))
        return Bounded(function(self.value), function(self.low), function(self.high))

    def rounded(self, dtype: DType, rounding: str = "rne", *, saturate: bool = False) -> Bounded:
        """Converted to a float dtype; rounding keeps order, so the limits round to limits."""
        convert = functools.partial(round_to, dtype=dtype, rounding=rounding, saturate=saturate)
        if self.exact:
            return certain(convert(self.value))
        low, high = convert(self.low), convert(self.high)
        lost = self.unsure & (np.isnan(low) | np.isnan(high) | self.anything)
        return settle(np.where(self.unsure, self.value, low), low, high, lost)


def certain(x: Array) -> Bounded:
    """A tile that is known exactly."""
    x = np.asarray(x)
    return Bounded(x, x, x)


def simplified(value: Array, low: Array, high: Array) -> Bounded:
    """A tile from its parts, marked as exact if it is."""
    tile = Bounded(value, low, high)
    return tile if bool(tile.unsure.any()) else certain(value)


def settle(value: Array, low: Array, high: Array, lost: Array) -> Bounded:
    """A float tile whose `lost` elements may be anything; values are moved inside the limits."""
    low, high = np.where(lost, -np.inf, low), np.where(lost, np.inf, high)
    stand_in = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
    value = np.where(np.isnan(value) & ~np.isnan(low), stand_in, value)
    value = np.where((value < low) | (low == high), low, np.where(value > high, high, value))
    return Bounded(value, low, high)


def any_of(masks: Sequence[Array]) -> Array:
    """Elementwise or."""
    return functools.reduce(np.logical_or, masks)
