"""Tensors of the oracle: an argument's own elements until something is written, then bounded numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import DType
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.reference.accumulation import Terms, accumulated, addition_loss, lowest_bit
from warpwave.tiles.reference.bounded import Bounded, certain, settle, simplified
from warpwave.tiles.reference.conversion import as_numbers, full_range
from warpwave.tiles.reference.memory import Window

Array = npt.NDArray[Any]
MAX_OVERLAP_WORK = 10_000


@dataclass
class Pending:
    """Atomic additions not yet rounded, since their order is not defined: sum|x|, common unit and count."""

    magnitude: Array
    unit: Array
    count: Array


class OracleStorage:
    """A tensor argument or a shared buffer."""

    def __init__(self, array: Array, dtype: DType, others: list[OracleStorage], *, atomics_flush: bool = False) -> None:
        self.array = array
        self.dtype = dtype
        self.others = others
        self.atomics_flush = atomics_flush
        self.parts: Bounded | None = None
        self.pending: Pending | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""
        return self.array.shape

    def is_view_of(self, array: Array) -> bool:
        """Whether `array` has the same elements in the same places."""
        mine, other = self.array.__array_interface__, array.__array_interface__
        same_layout = self.array.strides == array.strides and self.array.shape == array.shape
        return bool(same_layout and mine["data"] == other["data"] and self.array.dtype == array.dtype)

    def read(self, window: Window, fill: Bounded) -> Bounded:
        """The tile under the window, `fill` outside."""
        if self.parts is None:
            numbers = as_numbers(window.read(self.array, np.zeros((), self.array.dtype)), self.dtype)
            inside = window.read(np.broadcast_to(np.True_, self.shape), False)
            return fill.map(lambda outside: np.where(inside, numbers, outside).astype(numbers.dtype))
        self._settle()
        pairs = zip(_components(self.parts), _components(fill), strict=True)
        return simplified(*(window.read(part, outside) for part, outside in pairs))

    def write(self, window: Window, tile: Bounded) -> None:
        """Overwrite the elements under the window."""
        parts = self._opened()
        self._settle()
        for part, new in zip(_components(parts), _components(tile), strict=True):
            window.write(part, new)

    def add(self, window: Window, tile: Bounded) -> None:
        """Add to the elements under the window."""
        parts = self._opened()
        if not self.dtype.is_float:
            return self._add_integers(parts, window, tile)
        pending = self.pending or Pending(parts.magnitude.copy(), lowest_bit(parts), np.zeros(self.shape, np.int64))
        self.pending = pending
        for part, new in zip(_components(parts), _components(tile), strict=True):
            window.write(part, window.read(part, 0.0) + new)
        window.write(pending.magnitude, window.read(pending.magnitude, 0.0) + tile.magnitude)
        window.write(pending.unit, np.minimum(window.read(pending.unit, np.inf), lowest_bit(tile)))
        window.write(pending.count, window.read(pending.count, 0) + 1)
        return None

    def result(self) -> tuple[Array, Array]:
        """Value and radius of all elements, as float64."""
        if self.parts is None:
            value = self.array.astype(np.float64)
            return value, np.zeros(value.shape)
        self._settle()
        return self.parts.value.astype(np.float64), self.parts.radius

    def _opened(self) -> Bounded:
        """The bounded elements, to be changed in place."""
        if self.parts is None:
            self._refuse_overlap()
            numbers = as_numbers(self.array, self.dtype)
            self.parts = Bounded(*(np.array(numbers) for _ in range(3)))
        return self.parts

    def _refuse_overlap(self) -> None:
        for other in self.others:
            if other is not self and _overlap(self.array, other.array):
                raise UnsupportedError("the oracle cannot follow an output that overlaps another argument")

    def _add_integers(self, parts: Bounded, window: Window, tile: Bounded) -> None:
        value = window.read(parts.value, 0) + tile.value
        unsure = tile.unsure | window.read(parts.unsure, False)
        new = full_range(certain(value), unsure, self.dtype)
        for part, numbers in zip(_components(parts), _components(new), strict=True):
            window.write(part, numbers)

    def _settle(self) -> None:
        """Round what was added."""
        if self.parts is None or self.pending is None:
            return
        pending, self.pending = self.pending, None
        terms = Terms(self.parts, pending.magnitude, pending.unit, pending.count)
        special = ~np.isfinite(pending.magnitude)
        sums = accumulated(terms, self.dtype, addition_loss(self.dtype))
        if self.atomics_flush:
            sums = _flushed(sums, pending)
        nan = np.isnan(self.parts.value) & np.isnan(self.parts.low) & np.isnan(self.parts.high)
        lost = special & (pending.count > 1) & ~nan  # a NaN among them alone: infinities, one of which is not certain
        unknown = settle(*_components(self.parts), lost)
        for part, plain, other in zip(*map(_components, (self.parts, sums, unknown)), strict=True):
            part[...] = np.where(pending.count == 0, part, np.where(special, other, plain))


def _flushed(sums: Bounded, pending: Pending) -> Bounded:
    """Sums whose n + 1 operands and n results may each be taken as 0 where they are subnormal f32."""
    normal = float(np.finfo(np.float32).tiny)
    lost = np.where(pending.unit < normal, (2 * pending.count + 1) * normal, 0.0)
    return Bounded(sums.value, sums.low - lost, sums.high + lost)


def _components(x: Bounded) -> tuple[Array, Array, Array]:
    return x.value, x.low, x.high


def _overlap(a: Array, b: Array) -> bool:
    try:
        return np.shares_memory(a, b, max_work=MAX_OVERLAP_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
