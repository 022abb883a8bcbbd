"""The picture of a register tile: which waves hold which part, and each lane's elements in one corner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from warpwave.tiles.drawing.canvas import Canvas, hue
from warpwave.tiles.drawing.data import Ints, Lanes
from warpwave.tiles.types import TileType

CORNER = (32, 32)  # rows and columns of the detail: the largest block of one matrix instruction
CELL_HEIGHT, MIN_CELL = 18.0, 60.0
OVERVIEW, WIDEST = 300.0, 960.0


@dataclass(frozen=True, eq=False)
class Holders:
    """For each element: the waves that hold it as a bit mask, and the first holder's wave, lane and item."""

    waves: Ints
    wave: Ints
    lane: Ints
    item: Ints
    copies: Ints


def holders(lanes: Lanes, shape: tuple[int, int]) -> Holders:
    """Who holds each element of a tile of this shape; -1 where nobody does."""
    found = Holders(*(np.full(shape, start, np.int64) for start in (0, -1, -1, -1, 0)))
    waves, count, items, _ = lanes.coordinates.shape
    for wave in reversed(range(waves)):  # the first holder is written last
        for lane in reversed(range(count)):
            at = lanes.coordinates[wave, lane]
            inside = (at >= 0).all(axis=1) & (at < np.array(shape)).all(axis=1)
            place = tuple(at[inside].T)
            found.waves[place] |= 1 << wave
            found.wave[place], found.lane[place], found.item[place] = wave, lane, np.arange(items)[inside]
            np.add.at(found.copies, place, 1)
    return found


def draw_lanes(canvas: Canvas, lanes: Lanes, type_: TileType, x: float, y: float) -> None:
    """The overview by waves, and to its right the corner by lanes."""
    shape = (1, *type_.shape)[-2:]
    found = holders(lanes, (shape[0], shape[1]))
    count, per_lane = lanes.coordinates.shape[0], lanes.coordinates.shape[2]
    registers = -(-per_lane * type_.dtype.bits // 32)
    most = int(found.copies.max())
    facts = [
        f"{count} {lanes.group}s of {lanes.coordinates.shape[1]} lanes; each lane holds {per_lane} elements "
        f"in {registers} registers" + (f"; elements have up to {most} copies" if most > 1 else "")
    ]
    for i, fact in enumerate(facts):
        canvas.text(x, y + 14 * i, fact, size=12)
    top = y + 14 * len(facts) + 28
    width = _draw_overview(canvas, found, lanes.group, x, top)
    _draw_corner(canvas, found, type_, lanes.group, x + width + 56, top)


def _draw_overview(canvas: Canvas, found: Holders, group: str, x: float, y: float) -> float:
    """The whole tile, to scale, coloured by wave; returns its width."""
    rows, cols = found.wave.shape
    scale = OVERVIEW / max(rows, cols)
    canvas.text(x, y - 14, f"the tile, {rows} x {cols}, by {group}", size=12, bold=True)
    for first, last in _bands(found.waves):
        for left, right in _runs(found.waves[first]):
            mask = int(found.waves[first, left])
            members = [w for w in range(mask.bit_length()) if mask >> w & 1]
            place = x + left * scale, y + first * scale
            width, height = (right - left) * scale, max((last - first) * scale, 14.0)
            tip = f"rows {first}-{last - 1}, columns {left}-{right - 1}: {group}s {_list(members)}"
            canvas.rect(*place, width, height, fill=hue(members[0], 8) if members else "#eeeeee", tip=tip)
            name = _list(members)
            if width >= 7 * len(name) and height >= 12:
                canvas.text(place[0] + width / 2, place[1] + height / 2, name, anchor="middle", size=11)
    return max(OVERVIEW if cols >= rows else cols * scale, 150.0)


def _draw_corner(canvas: Canvas, found: Holders, type_: TileType, group: str, x: float, y: float) -> None:
    """The first rows and columns: lane, and registers counted from the tile's first."""
    rows, cols = (min(n, most) for n, most in zip(found.wave.shape, CORNER, strict=True))
    key = found.wave * 4096 + found.lane
    narrowest = min(right - left for row in range(rows) for left, right in _runs(key[row, :cols]))
    unit = max(MIN_CELL / narrowest, 12.0)
    cols = min(cols, int(WIDEST / unit))
    runs = [list(_runs(key[row, :cols])) for row in range(rows)]
    canvas.text(
        x, y - 14, f"its first {rows} rows and {cols} columns: lane, and element of that lane", size=12, bold=True
    )
    for col in range(0, cols, max(1, round(MIN_CELL / unit))):
        canvas.text(x + (col + 0.5) * unit, y + 2, str(col), anchor="middle", size=8, fill="#656d76")
    for row in range(rows):
        top = y + 10 + row * CELL_HEIGHT
        canvas.text(x - 6, top + CELL_HEIGHT / 2, str(row), anchor="end", size=8, fill="#656d76")
        for left, right in runs[row]:
            _draw_cell(canvas, found, type_, group, (row, left, right), x + left * unit, top, (right - left) * unit)


def _draw_cell(
    canvas: Canvas,
    found: Holders,
    type_: TileType,
    group: str,
    where: tuple[int, int, int],
    x: float,
    y: float,
    width: float,
) -> None:
    row, left, right = where
    wave, lane = int(found.wave[row, left]), int(found.lane[row, left])
    items = found.item[row, left:right]
    bits = type_.dtype.bits
    first, last = int(items.min()) * bits // 32, (int(items.max()) * bits + bits - 1) // 32
    tip = (
        f"row {row}, columns {left}-{right - 1}: {group} {wave}, lane {lane}, elements {items.min()}-{items.max()}, "
        f"registers {first}-{last} of the tile"
    )
    canvas.rect(x, y, width, CELL_HEIGHT, fill=hue(lane, 64), tip=tip)
    span = f"{items.min()}" if len(items) == 1 else f"{items.min()}-{items.max()}"
    canvas.text(x + 4, y + CELL_HEIGHT / 2, f"L{lane}", size=9, bold=True)
    canvas.text(x + width - 4, y + CELL_HEIGHT / 2, span, size=8, anchor="end", fill="#57606a")


def _bands(values: Ints) -> Iterator[tuple[int, int]]:
    """Runs of equal rows."""
    first = 0
    for row in range(1, len(values) + 1):
        if row == len(values) or (values[row] != values[first]).any():
            yield first, row
            first = row


def _runs(values: Ints) -> Iterator[tuple[int, int]]:
    """Runs of equal entries."""
    borders = [0, *(int(i) + 1 for i in np.flatnonzero(values[1:] != values[:-1])), len(values)]
    yield from pairwise(borders)


def _list(numbers: list[int]) -> str:
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}-{numbers[-1]}"
    return ", ".join(map(str, numbers)) or "none"
