"""What the interpreter asks of a numeric domain: how values are represented, computed, stored and decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy.typing as npt

from warpwave.tiles.dtypes import DType
from warpwave.tiles.ir import Op
from warpwave.tiles.reference.memory import Window

V = TypeVar("V")


class Storage(Protocol[V]):
    """Mutable elements: a global tensor or a shared buffer."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""
        ...

    def read(self, window: Window, fill: V) -> V:
        """The tile under the window, `fill` outside."""
        ...

    def write(self, window: Window, tile: V) -> None:
        """Overwrite the elements under the window."""
        ...

    def add(self, window: Window, tile: V) -> None:
        """Add to the elements under the window."""
        ...


class Domain(Protocol[V]):
    """One way to give numbers to the values of the IR. A scalar is a tile of rank 0."""

    def scalar(self, value: bool | int | float, dtype: DType) -> V:
        """A constant, rounded to `dtype`."""
        ...

    def tensor(self, array: npt.NDArray[Any], dtype: DType) -> Storage[V]:
        """A tensor argument."""
        ...

    def buffer(self, shape: tuple[int, ...], dtype: DType) -> Storage[V]:
        """A shared buffer; what it holds before it is written is never read."""
        ...

    def compute(self, op: Op, operands: Sequence[V]) -> list[V]:
        """The results of an op without effects or regions."""
        ...

    def integer(self, value: V, op: Op) -> int:
        """An integer scalar that decides where `op` reads, writes or loops."""
        ...

    def truth(self, value: V, op: Op) -> bool:
        """Whether all of a bool value is true, to decide how `op` goes on."""
        ...

    def show(self, message: str, values: Sequence[V]) -> None:
        """Print values for the user."""
        ...
