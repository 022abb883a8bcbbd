"""Rows and step of a chain of two products, as in attention, by modelled time: for where no device can measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from warpwave.backends.amd.model.cu import chip_of
from warpwave.backends.amd.model.schedules import Chain, Figure, ranking, tiles_of

CLEARLY = 0.97  # of the usual step's time: what another must reach to be preferred


@dataclass(frozen=True)
class Whole:
    """All of a launch: `heads` times `rows` by `columns`; `masked` where rows end at a diagonal to the last corner."""

    heads: int
    rows: int
    columns: int
    masked: bool


@dataclass(frozen=True)
class Step:
    """What a block of a workgroup is: its rows, and the columns of a step."""

    rows: int
    columns: int

    def __str__(self) -> str:
        return f"{self.rows} x {self.columns}"


@dataclass(frozen=True)
class Choice:
    """The step that is used, and the modelled clocks of all that were compared, fewest first."""

    best: Step
    clocks: Mapping[Step, float]

    def __str__(self) -> str:
        """Why."""
        order = sorted(self.clocks, key=lambda step: (step != self.best, self.clocks[step]))
        return ", ".join(f"{step}: {self.clocks[step] / 1000:.0f}k clocks" for step in order)


def choose_step(usual: Chain, whole: Whole, given: Mapping[int, int]) -> Choice | None:
    """The step of least time for chains like the `usual` one, which stays unless another is clearly faster.

    `given` are extents of the tile that are settled, by axis. None where nothing is modelled whose width is a multiple
    of the usual one's: waves may have to share other widths unevenly, which rules out some schedules.
    """
    tiles = tiles_of(usual)
    widths = [tile[2] for tile in tiles if tile[2] % usual.tile[2] == 0]
    if not widths:
        return None
    fitting = [tile for tile in tiles if tile[2] == min(widths) and all(tile[i] == n for i, n in given.items())]
    clocks = dict(_modelled(usual, [*fitting, usual.tile], whole))
    mine = Step(*usual.tile[:2])
    best = min(clocks, key=lambda step: clocks[step], default=mine)
    return Choice(best if clocks.get(mine, float("inf")) * CLEARLY > clocks.get(best, 0) else mine, clocks)


def _modelled(usual: Chain, tiles: list[tuple[int, ...]], whole: Whole) -> Iterator[tuple[Step, float]]:
    cus = chip_of(usual.target, None).cus
    for rows, columns, width in tiles:
        found = ranking(Chain(usual.target, usual.itemsize, usual.masked, (rows, columns, width)))
        assert found is not None
        first = found.figures[found.names[0]]
        if first.resident:
            yield Step(rows, columns), _clocks(first, rows, whole, cus)


def _clocks(figure: Figure, rows: int, whole: Whole, cus: int) -> float:
    """Of the whole launch: round by round, or where blocks differ, the longest first, spread evenly."""
    count = -(-whole.rows // rows)
    seen = [whole.columns] * count
    if whole.masked:
        seen = [min(whole.columns, max(0, whole.columns - whole.rows + (i + 1) * rows)) for i in range(count)]
    longest, _ = figure.at(max(seen))
    blocks = whole.heads * count
    if blocks <= cus:
        return longest
    _, share = figure.at(sum(seen) / count)
    held = cus * figure.resident
    return max(longest, share * (blocks / cus if whole.masked else -(-blocks // held) * figure.resident))
