"""Rectangles and text in pixels, as data that is written as SVG or PNG."""

from __future__ import annotations

import colorsys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Rect:
    """A filled rectangle; `tip` is shown where the format can."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    tip: str = ""
    stroke: str = "#ffffff"


@dataclass(frozen=True)
class Text:
    """A line of text; `anchor` is start, middle or end, y its middle."""

    x: float
    y: float
    text: str
    size: float = 11
    anchor: str = "start"
    fill: str = "#1f2328"
    bold: bool = False


@dataclass
class Canvas:
    """A picture that grows with what is put on it."""

    shapes: list[Rect | Text] = field(default_factory=list)
    margin: float = 16

    def rect(self, x: float, y: float, width: float, height: float, *, fill: str, tip: str = "") -> None:
        """Add a rectangle."""
        self.shapes.append(Rect(x, y, width, height, fill, tip))

    def text(self, x: float, y: float, text: str, **style: Any) -> None:
        """Add a line of text; `style` are fields of Text."""
        self.shapes.append(Text(x, y, text, **style))

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that hold everything."""
        corners = list(self._corners())
        return max(x for x, _ in corners) + self.margin, max(y for _, y in corners) + self.margin

    def _corners(self) -> Iterator[tuple[float, float]]:
        for shape in self.shapes:
            if isinstance(shape, Rect):
                yield shape.x + shape.width, shape.y + shape.height
            else:
                reach = {"start": 1.0, "middle": 0.5, "end": 0.0}[shape.anchor]
                yield shape.x + reach * text_width(shape.text, shape.size, shape.bold), shape.y + shape.size / 2


def text_width(text: str, size: float, bold: bool = False) -> float:
    """About how wide a text is in the sans-serif fonts that browsers and matplotlib use."""
    return len(text) * size * (0.64 if bold else 0.6)


def hue(index: int, count: int, *, light: float = 0.78) -> str:
    """The index-th of `count` colours, neighbours alike: for ordered things such as lanes or columns."""
    red, green, blue = colorsys.hls_to_rgb((index / max(count, 1) * 0.85 + 0.55) % 1.0, light, 0.62)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"
