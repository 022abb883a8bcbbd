"""Which schedule suits a product's tiles, from figures that the timing model gave for our own code of each schedule.

Replaying code takes a second, too long for a build, so the figures of common tiles are kept
(`python -m warpwave.bench.grid_model.schedules` makes them again); other tiles go by the nearest of these.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FIGURES = Path(__file__).with_name("schedules.json")
DEPTH = 4096  # elements of the product that the figures are of
PREFERRED = ("multistage", "ping-pong", "interleave")  # of those that the model cannot tell apart the first is taken
RESOLUTION = 0.95  # nearer times are the same to this model: so far it is off for products (docs/timing.md)


@dataclass(frozen=True)
class Figure:
    """Clocks of a workgroup's tile: alone on a compute unit, and its share of one that holds all that fit."""

    alone: int
    full: int

    @property
    def clocks(self) -> float:
        """One number to compare: how full the compute units will be is not known when a kernel is built."""
        return math.sqrt(self.alone * self.full)

    def __str__(self) -> str:
        return f"{_thousands(self.alone)}/{_thousands(self.full)}"


@dataclass(frozen=True)
class Ranking:
    """Schedules in the order in which they should be tried, with the figures of each, of tiles of this shape."""

    tile: tuple[int, int]
    figures: Mapping[str, Figure]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Product:
    """What the figures depend on: the operands' bytes an element, whether depth runs along the rows of both."""

    target: str
    itemsize: int
    along_rows: bool
    tile: tuple[int, int]


def ranking(product: Product) -> Ranking | None:
    """The schedules for a product, fastest first; None where there are no figures for such operands."""
    tables = _figures().get((product.target, product.itemsize, product.along_rows))
    if tables is None:
        return None
    tile = min(tables, key=lambda known: (_distance(known, product.tile), known))
    return Ranking(tile, tables[tile], _ordered(tables[tile]))


def _ordered(figures: Mapping[str, Figure]) -> tuple[str, ...]:
    left = {name: figures[name].clocks for name in PREFERRED if name in figures}
    names: list[str] = []
    while left:
        least = min(left.values())
        names.append(next(name for name in left if left[name] * RESOLUTION <= least))
        del left[names[-1]]
    return tuple(names)


def _distance(known: tuple[int, int], wanted: tuple[int, int]) -> float:
    return sum(abs(math.log2(max(a, 1) / b)) for a, b in zip(wanted, known, strict=True))


Key = tuple[str, int, bool]


@cache
def _figures() -> Mapping[Key, Mapping[tuple[int, int], Mapping[str, Figure]]]:
    found: dict[Key, dict[tuple[int, int], dict[str, Figure]]] = {}
    for row in json.loads(FIGURES.read_text()):
        tables = found.setdefault((row["target"], row["itemsize"], row["along_rows"]), {})
        height, width = row["tile"]
        tables.setdefault((height, width), {})[row["schedule"]] = Figure(row["alone"], row["full"])
    return found


def _thousands(clocks: int) -> str:
    return f"{clocks / 1000:.0f}k"
