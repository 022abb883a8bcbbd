"""What a backend says about a tile's layout; plain arrays, so that one drawing serves every backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwave.tiles.drawing.canvas import Canvas
from warpwave.tiles.errors import Loc
from warpwave.tiles.types import TileType

Ints = np.ndarray[Any, np.dtype[np.int64]]
BANK_BYTES = 4
IDLE = -1


@dataclass(frozen=True, eq=False)
class Lanes:
    """Who holds the elements of a register tile.

    `coordinates[wave, lane, item]` is the (row, column) of the item-th value that a lane holds; coordinates
    outside the tile are padding. Several holders of one element have copies. `group` is what the machine calls
    a set of lanes that run together.
    """

    coordinates: Ints
    group: str = "wave"


@dataclass(frozen=True, eq=False)
class Access:
    """One instruction that a group of lanes uses on a shared tile.

    `offsets[lane]` is the first byte of each lane in the tile (IDLE: it takes no part), `phases` are the lanes
    that are served together, `width` the bytes of one lane. `what` says who does it.
    """

    instruction: str
    what: str
    offsets: Ints
    phases: tuple[tuple[int, ...], ...]
    width: int
    banks: int

    def words(self, phase: tuple[int, ...]) -> dict[int, dict[int, list[int]]]:
        """For each bank the distinct words that it must serve in a phase, and the lanes that want each."""
        found: dict[int, dict[int, list[int]]] = {}
        for lane in (n for n in phase if self.offsets[n] != IDLE):
            first = int(self.offsets[lane]) // BANK_BYTES
            for word in range(first, first + self.width // BANK_BYTES):
                found.setdefault(word % self.banks, {}).setdefault(word, []).append(lane)
        return found

    @property
    def clocks(self) -> int:
        """Clocks of one instruction: each phase takes as many as its busiest bank has words to serve."""
        return sum(max((len(words) for words in self.words(phase).values()), default=1) for phase in self.phases)

    @property
    def conflicts(self) -> int:
        """Clocks beyond one for each phase."""
        return self.clocks - len(self.phases)


@dataclass(frozen=True, eq=False)
class Placement:
    """Where a shared tile lies: `offsets[row, column]` in bytes from its beginning, over `banks` of 4 bytes."""

    offsets: Ints
    banks: int
    swizzle: str
    accesses: tuple[Access, ...] = ()


@dataclass(frozen=True, eq=False)
class TileLayout:
    """One tile of a kernel for one target; exactly one of `lanes` and `placement` is given."""

    name: str
    type: TileType
    loc: Loc | None
    target: str
    lanes: Lanes | None = None
    placement: Placement | None = None

    @property
    def label(self) -> str:
        """Name, type and line, as a heading."""
        return f"{self.name}: {self.type}" + (f", line {self.loc.line}" if self.loc else "")


@dataclass(frozen=True, eq=False)
class Chart:
    """A picture that a backend has made itself, and the same in lines of text."""

    title: str
    text: str
    canvas: Canvas
