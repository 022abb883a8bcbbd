"""Which schedule suits a loop's products, from figures that the timing model gave for our own code of each schedule.

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
from typing import Any

FIGURES = Path(__file__).with_name("schedules.json")
DEPTH = 4096  # that the figures are of: elements of a product's depth, or columns that a chain of products sees
PREFERRED = ("multistage", "ping-pong", "interleave")  # of those that the model cannot tell apart the first is taken
RESOLUTION = 0.95  # nearer times are the same to this model: so far it is off for products (docs/timing.md)


Tile = tuple[int, ...]
Key = tuple[str, int, str, bool]


@dataclass(frozen=True)
class Figure:
    """Clocks of a workgroup's tile: alone on a compute unit, and its share of one that holds all that fit.

    `begun` are those of both that do not grow with the depth, `resident` is how many workgroups fit; figures of
    single products do without.
    """

    alone: int
    full: int
    begun: tuple[int, int] = (0, 0)
    resident: int = 1

    @property
    def clocks(self) -> float:
        """One number to compare: how full the compute units will be is not known when a kernel is built."""
        return math.sqrt(self.alone * self.full)

    def at(self, depth: float) -> tuple[float, float]:
        """Clocks alone and of a full compute unit, at another depth."""
        alone, full = (
            begun + (clocks - begun) * depth / DEPTH
            for begun, clocks in zip(self.begun, (self.alone, self.full), strict=True)
        )
        return alone, full

    def __str__(self) -> str:
        return f"{_thousands(self.alone)}/{_thousands(self.full)}"


@dataclass(frozen=True)
class Ranking:
    """Schedules in the order in which they should be tried, with the figures of each, of tiles of this shape."""

    tile: Tile
    figures: Mapping[str, Figure]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Product:
    """What the figures depend on: the operands' bytes an element, whether depth runs along the rows of both."""

    target: str
    itemsize: int
    along_rows: bool
    tile: tuple[int, int]

    @property
    def key(self) -> Key:
        """Whose figures are comparable."""
        return self.target, self.itemsize, "product", self.along_rows


@dataclass(frozen=True)
class Chain:
    """Two products of a loop, the second with what became of the first, as in attention.

    The `tile`: rows, columns of the first product, columns of the second. `masked`: rows end at a diagonal.
    """

    target: str
    itemsize: int
    masked: bool
    tile: tuple[int, int, int]

    @property
    def key(self) -> Key:
        """Whose figures are comparable."""
        return self.target, self.itemsize, "chain", self.masked


def ranking(work: Product | Chain) -> Ranking | None:
    """The schedules for a loop, fastest first; None where there are no figures for such operands."""
    tables = _figures().get(work.key)
    if tables is None:
        return None
    tile = min(tables, key=lambda known: (_distance(known, work.tile), known))
    return Ranking(tile, tables[tile], _ordered(tables[tile]))


def tiles_of(work: Product | Chain) -> tuple[Tile, ...]:
    """The tiles that there are figures of, for such operands."""
    return tuple(_figures().get(work.key, ()))


def _ordered(figures: Mapping[str, Figure]) -> tuple[str, ...]:
    left = {name: figures[name].clocks for name in PREFERRED if name in figures}
    names: list[str] = []
    while left:
        least = min(left.values())
        names.append(next(name for name in left if left[name] * RESOLUTION <= least))
        del left[names[-1]]
    return tuple(names)


def _distance(known: Tile, wanted: Tile) -> float:
    return sum(abs(math.log2(max(a, 1) / b)) for a, b in zip(wanted, known, strict=True))


@cache
def _figures() -> Mapping[Key, Mapping[Tile, Mapping[str, Figure]]]:
    found: dict[Key, dict[Tile, dict[str, Figure]]] = {}
    for row in json.loads(FIGURES.read_text()):
        figure = Figure(row["alone"], row["full"], tuple(row.get("begun", (0, 0))), row.get("resident", 1))
        found.setdefault(_key(row), {}).setdefault(tuple(row["tile"]), {})[row["schedule"]] = figure
    return found


def _key(row: Mapping[str, Any]) -> Key:
    kind, how = ("chain", "masked") if "masked" in row else ("product", "along_rows")
    return row["target"], row["itemsize"], kind, row[how]


def _thousands(clocks: int) -> str:
    return f"{clocks / 1000:.0f}k"
