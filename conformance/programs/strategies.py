"""Programs for hypothesis: the same generator, whose choices hypothesis draws and shrinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from warpwave.conformance.programs.generate import generate
from warpwave.conformance.programs.model import Program


class DrawChooser:
    """Choices by hypothesis."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`; hypothesis shrinks towards `low`."""
        return int(self._draw(st.integers(low, high)))


@st.composite
def programs(draw: Callable[[Any], Any]) -> Program:
    """Any program of the generator."""
    return generate(DrawChooser(draw))
