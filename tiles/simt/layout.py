"""How a tile's elements fall on waves, lanes and registers of a workgroup.

A layout is additive: the coordinate of an element is a sum of one part for each bit of the lane number, one
for each digit of the wave number, and one for the item, i.e. the place among the values that a lane holds. A
part of zero means that lanes or waves hold copies. Accumulators and operands of matrix instructions, and the
blocked layouts for vector memory accesses, all have this form. A wave is the lanes that execute together,
elsewhere called a warp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

Coord = tuple[int, ...]
Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Layout:
    """`lanes[b]` for lane bit b; `waves` are (count, part) digits, least significant first; `items` in order.

    `width` items at a time form one hardware vector (4 or 16 for accumulators, a memory access elsewhere).
    """

    lanes: tuple[Coord, ...]
    waves: tuple[tuple[int, Coord], ...]
    items: tuple[Coord, ...]
    width: int = 1

    @property
    def rank(self) -> int:
        """Number of dimensions of the tile."""
        return len(self.items[0])

    @property
    def wave_count(self) -> int:
        """Waves of the workgroup, copies included."""
        return math.prod(count for count, _ in self.waves)

    @cached_property
    def coordinates(self) -> Ints:
        """[wave, lane, item, dimension]: every element's coordinate."""
        lane, wave = np.arange(1 << len(self.lanes)), np.arange(self.wave_count)
        lane_part = sum(
            ((lane >> b & 1)[:, None] * np.array(c) for b, c in enumerate(self.lanes)), np.zeros((1, self.rank), int)
        )
        wave_part = np.zeros((self.wave_count, self.rank), int)
        for count, part in self.waves:
            wave_part, wave = wave_part + (wave % count)[:, None] * np.array(part), wave // count
        items = np.array(self.items).reshape(len(self.items), self.rank)
        return np.asarray(wave_part[:, None, None] + lane_part[None, :, None] + items)

    @cached_property
    def extent(self) -> Coord:
        """The shape that the layout covers; a tile may be smaller, and its rest is padding."""
        return tuple(int(x) + 1 for x in self.coordinates.max(axis=(0, 1, 2))) if self.rank else ()

    @property
    def lane_copies(self) -> int:
        """Mask of lane bits whose lanes hold copies."""
        return sum(1 << b for b, part in enumerate(self.lanes) if not any(part))

    @property
    def wave_copies(self) -> tuple[int, ...]:
        """Positions of wave digits whose waves hold copies."""
        return tuple(i for i, (count, part) in enumerate(self.waves) if count > 1 and not any(part))

    def same_map(self, other: Layout) -> bool:
        """Whether both put every element in the same lane and item."""
        return (self.lanes, self.waves, self.items) == (other.lanes, other.waves, other.items)


def _drop(part: Coord, axis: int) -> Coord:
    return part[:axis] + part[axis + 1 :]


def _zero(part: Coord, axis: int) -> Coord:
    return (*part[:axis], 0, *part[axis + 1 :])


def drop_axis(layout: Layout, axis: int) -> Layout:
    """The layout of a reduction's result: the axis is gone, what differed only along it are copies."""
    items = tuple(dict.fromkeys(_drop(i, axis) for i in layout.items))
    lanes = tuple(_drop(p, axis) for p in layout.lanes)
    width = _width_without(layout, axis, len(items))
    return Layout(lanes, tuple((n, _drop(p, axis)) for n, p in layout.waves), items, width)


def flatten_axis(layout: Layout, axis: int) -> Layout:
    """The layout of a row or column that is to be repeated along `axis`: as `drop_axis`, with extent 1 kept."""
    items = tuple(dict.fromkeys(_zero(i, axis) for i in layout.items))
    lanes = tuple(_zero(p, axis) for p in layout.lanes)
    width = _width_without(layout, axis, len(items))
    return Layout(lanes, tuple((n, _zero(p, axis)) for n, p in layout.waves), items, width)


def _width_without(layout: Layout, axis: int, items: int) -> int:
    """Vectors along the last axis stay whole where another axis goes."""
    return layout.width if axis < layout.rank - 1 and items % layout.width == 0 else 1


def insert_axis(layout: Layout, axis: int) -> Layout:
    """The layout of `v[:, None]` or `v[None, :]`."""

    def put(part: Coord) -> Coord:
        return (*part[:axis], 0, *part[axis:])

    waves = tuple((n, put(p)) for n, p in layout.waves)
    return Layout(tuple(put(p) for p in layout.lanes), waves, tuple(put(i) for i in layout.items), layout.width)


def transposed(layout: Layout) -> Layout:
    """Rows and columns swapped: nothing moves."""
    waves = tuple((n, p[::-1]) for n, p in layout.waves)
    return Layout(tuple(p[::-1] for p in layout.lanes), waves, tuple(i[::-1] for i in layout.items))


def item_map(source: Layout, target: Layout, axis: int | None = None) -> list[int]:
    """For each item of `target`, the item of `source` that has its coordinate, with `axis` dropped first."""
    index = {item: i for i, item in enumerate(source.items)}
    return [index[item if axis is None else _drop(item, axis)] for item in target.items]


def is_run(layout: Layout, length: int) -> bool:
    """Whether each `length` items are neighbours along the last axis that begin at a multiple of it."""
    items = layout.items
    if len(items) % length:
        return False
    for start in range(0, len(items), length):
        first = items[start]
        for step in range(1, length):
            if items[start + step] != (*first[:-1], first[-1] + step):
                return False
    parts = [p[-1] for p in layout.lanes] + [p[-1] for _, p in layout.waves] + [i[-1] for i in items[::length]]
    return all(part % length == 0 for part in parts)


# -- sub-tiles that need no data movement: None where lanes would have to exchange -----------------------


def _reach(layout: Layout, axis: int) -> tuple[int, int]:
    """Smallest and largest coordinate that lanes and waves add along an axis."""
    parts = [p[axis] for p in layout.lanes] + [(n - 1) * p[axis] for n, p in layout.waves]
    return sum(min(p, 0) for p in parts), sum(max(p, 0) for p in parts)


def sliced(layout: Layout, offsets: Coord, shape: Coord) -> Layout | None:
    """The items inside a window, if for every lane the same items are inside."""
    kept = []
    for item in layout.items:
        inside = []
        for axis, (offset, extent) in enumerate(zip(offsets, shape, strict=True)):
            low, high = (item[axis] + r - offset for r in _reach(layout, axis))
            if not (high < 0 or low >= extent) and not (low >= 0 and high < extent):
                return None
            inside.append(0 <= low < extent)
        if all(inside):
            kept.append(tuple(i - o for i, o in zip(item, offsets, strict=True)))
    width = layout.width if len(kept) % layout.width == 0 else 1
    return Layout(layout.lanes, layout.waves, tuple(kept), width) if kept else None


def halved(layout: Layout) -> Layout | None:
    """The layout of the even (and odd) columns, if each lane holds both of every pair."""
    parts = [p[-1] for p in layout.lanes] + [p[-1] for _, p in layout.waves]
    items = {i for i in layout.items}
    pairs = all((*i[:-1], i[-1] ^ 1) in items for i in items)
    if any(p % 2 for p in parts) or not pairs:
        return None

    def half(part: Coord) -> Coord:
        return (*part[:-1], part[-1] // 2)

    kept = tuple(half(i) for i in layout.items if i[-1] % 2 == 0)
    waves = tuple((n, half(p)) for n, p in layout.waves)
    width = layout.width // 2 if layout.width % 2 == 0 and len(kept) % (layout.width // 2) == 0 else 1
    return Layout(tuple(half(p) for p in layout.lanes), waves, kept, width)


def doubled(layout: Layout) -> Layout:
    """The inverse of `halved`."""

    def double(part: Coord, odd: int = 0) -> Coord:
        return (*part[:-1], 2 * part[-1] + odd)

    items = tuple(double(i, odd) for i in layout.items for odd in (0, 1))
    waves = tuple((n, double(p)) for n, p in layout.waves)
    return Layout(tuple(double(p) for p in layout.lanes), waves, items, 2 * layout.width)


def joined(layouts: Sequence[Layout], starts: Sequence[int], axis: int) -> Layout | None:
    """Tiles side by side along an axis, if their lanes and waves are laid out alike and no padding overlaps."""
    first = layouts[0]
    overlaps = any(start + x.extent[axis] > end for x, start, end in zip(layouts, starts, starts[1:], strict=False))
    if overlaps or any((x.lanes, x.waves) != (first.lanes, first.waves) for x in layouts):
        return None
    items = tuple(
        (*i[:axis], i[axis] + start, *i[axis + 1 :]) for x, start in zip(layouts, starts, strict=True) for i in x.items
    )
    return Layout(first.lanes, first.waves, items, first.width)


# -- products -----------------------------------------------------------------------------------------


def round_up(x: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-x // step) * step


def wave_split(waves: int, blocks_m: int, blocks_n: int, over: tuple[int, int]) -> tuple[int, int]:
    """How many waves really split rows and columns: no more than there are blocks; the rest hold copies."""
    m = min(over[0], floor_power_of_two(blocks_m))
    n = min(over[1] * (over[0] // m), floor_power_of_two(blocks_n))
    assert waves % (m * n) == 0, f"{waves} waves do not form a grid of {m} x {n}"
    return m, n


def floor_power_of_two(x: int) -> int:
    """The largest power of two that is at most x."""
    return 1 << (x.bit_length() - 1)


def real_digits(digits: tuple[tuple[int, Coord], ...]) -> tuple[tuple[int, Coord], ...]:
    """Without the parts of digits that are always 0, so that equal maps are equal layouts."""
    return tuple((n, part if n > 1 else (0,) * len(part)) for n, part in digits)


# -- blocked layouts for memory accesses --------------------------------------------------------------


def blocked_layout(shape: Sequence[int], lanes: int, waves: int, vector: int) -> Layout:
    """Lanes side by side along the last dimension with `vector` elements each, what remains along the rows."""
    if len(shape) == 1:
        flat = blocked_layout((1, shape[0]), lanes, waves, vector)
        return Layout(
            tuple(p[1:] for p in flat.lanes),
            tuple((n, p[1:]) for n, p in flat.waves),
            tuple(i[1:] for i in flat.items),
            flat.width,
        )
    rows, cols = shape
    vector = min(vector, floor_power_of_two(cols))
    across = min(lanes, ceil_power_of_two(-(-cols // vector)))
    down = min(lanes // across, ceil_power_of_two(rows))
    parts = [(0, vector << b) for b in range(across.bit_length() - 1)]
    parts += [(1 << b, 0) for b in range(down.bit_length() - 1)]
    parts += [(0, 0)] * (lanes.bit_length() - 1 - len(parts))
    waves_down = min(waves, ceil_power_of_two(-(-rows // down)))
    waves_across = min(waves // waves_down, ceil_power_of_two(-(-cols // (across * vector))))
    digits = (
        (waves_across, (0, across * vector)),
        (waves_down, (down, 0)),
        (waves // (waves_down * waves_across), (0, 0)),
    )
    step_r, step_c = down * waves_down, across * vector * waves_across
    items = tuple((r, c + v) for r in range(0, rows, step_r) for c in range(0, cols, step_c) for v in range(vector))
    return Layout(tuple(parts), real_digits(digits), items, vector)


def transposing_layout(shape: Coord, nbytes: int, block: Coord, lanes: int, waves: int) -> Layout:
    """A block of `block` elements for each lane, whose columns are to become rows.

    Rows of blocks are read as vectors, and their columns can be written as vectors. Few lanes are below each
    other, so that the others read long pieces of rows; they write pieces that lie side by side.
    """
    down = (16 if nbytes > 1 else 32) // (block[0] * nbytes)
    rows, cols = shape[0] // block[0], shape[1] // block[1]
    low = min(down, floor_power_of_two(rows))
    across = min(lanes // low, ceil_power_of_two(cols))
    high = min(lanes // (low * across), ceil_power_of_two(-(-rows // low)))
    parts = [(block[0] << b, 0) for b in range(low.bit_length() - 1)]
    parts += [(0, block[1] << b) for b in range(across.bit_length() - 1)]
    parts += [(block[0] * low << b, 0) for b in range(high.bit_length() - 1)]
    parts += [(0, 0)] * (lanes.bit_length() - 1 - len(parts))
    waves_across = min(waves, ceil_power_of_two(-(-cols // across)))
    waves_down = min(waves // waves_across, ceil_power_of_two(-(-rows // (low * high))))
    digits = (
        (waves_across, (0, block[1] * across)),
        (waves_down, (block[0] * low * high, 0)),
        (waves // (waves_down * waves_across), (0, 0)),
    )
    starts = (
        range(0, shape[0], block[0] * low * high * waves_down),
        range(0, shape[1], block[1] * across * waves_across),
    )
    block_items = [(i, j) for i in range(block[0]) for j in range(block[1])]
    items = tuple((r + i, c + j) for r in starts[0] for c in starts[1] for i, j in block_items)
    return Layout(tuple(parts), real_digits(digits), items, block[1])


def ceil_power_of_two(x: int) -> int:
    """The smallest power of two that is at least x."""
    return 1 << (x - 1).bit_length()
