"""Where a generator's choices come from: a seed, the same on every machine, or hypothesis, which also shrinks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Chooser(Protocol):
    """Draws integers."""

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        ...


class SeedChooser:
    """Pseudo-random choices; `Random.random` is documented to give the same sequence in every Python version."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`."""
        return low + int(self._random.random() * (high - low + 1))


def pick(chooser: Chooser, options: Sequence[T]) -> T:
    """One of the options; the first is the simplest, to which hypothesis shrinks."""
    return options[chooser.integer(0, len(options) - 1)]


def chance(chooser: Chooser, percent: int) -> bool:
    """True in `percent` of the cases."""
    return chooser.integer(0, 99) >= 100 - percent
