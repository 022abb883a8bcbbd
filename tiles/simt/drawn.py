"""Layouts and shared tiles of a lowering as data for `tiles.drawing`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from warpwave.tiles.drawing.data import Ints, Lanes, Placement, TileLayout
from warpwave.tiles.errors import Loc
from warpwave.tiles.ir import Value, walk
from warpwave.tiles.simt.context import Lowering, SharedTile
from warpwave.tiles.simt.layout import Layout


def drawn_tiles(
    lw: Lowering, target: str, group: str, placement: Callable[[Value, SharedTile], Placement]
) -> list[TileLayout]:
    """Register and shared tiles in program order, those that are laid out alike under one name once.

    `group` is what the target calls a wave; `placement` says how a shared tile lies in banks.
    """
    found: dict[tuple[object, ...], TileLayout] = {}
    for value, loc in _values(lw):
        name = name_of(value, lw)
        if value in lw.layouts:
            layout = lw.layouts[value]
            drawn = TileLayout(name, value.tile, loc, target, lanes_of(layout, group))
            found.setdefault((name, value.tile, layout), drawn)
        if value in lw.shared:
            shared = lw.shared[value]
            drawn = TileLayout(name, value.tile, loc, target, placement=placement(value, shared))
            found.setdefault((name, value.tile, shared.masks, shared.pitch), drawn)
    return list(found.values())


def _values(lw: Lowering) -> Iterator[tuple[Value, Loc | None]]:
    """Values with the place of the op that makes them, a loop's carried ones with the loop's."""
    for op in walk(lw.kernel.body):
        for value in [*op.results, *(a for region in op.regions for a in region.args)]:
            yield value, op.loc


def lanes_of(layout: Layout, group: str) -> Lanes:
    """Every lane's coordinates; a vector is a tile of one row."""
    coordinates = layout.coordinates
    if layout.rank == 1:
        coordinates = np.concatenate([np.zeros_like(coordinates), coordinates], axis=-1)
    return Lanes(coordinates, group)


def offsets_in(shared: SharedTile, rows: Ints, cols: Ints) -> Ints:
    """Byte offsets of a shared tile's elements: the numbers that `SharedTile.within` writes as C."""
    return stored_at(shared, cols, rows) if shared.block else stored_at(shared, rows, cols)


def stored_at(shared: SharedTile, rows: Ints, cols: Ints) -> Ints:
    """Byte offsets by row and column of the memory, which are exchanged where a tile is stored transposed."""
    size = shared.dtype.nbytes
    linear = rows * shared.pitch + cols * size
    if shared.panels:
        columns = shared.pitch // size
        linear = cols // columns * shared.panels + rows * shared.pitch + cols % columns * size
    for bit, mask in enumerate(shared.masks):
        linear = linear ^ (rows >> bit & 1) * mask
    return np.asarray(linear)


def tile_offsets(shared: SharedTile) -> Ints:
    """The byte offset of every element of a shared tile; a vector is a tile of one row."""
    rows, cols = (1, *shared.shape)[-2:]
    return offsets_in(shared, *np.meshgrid(np.arange(rows), np.arange(cols), indexing="ij"))


def swizzle_text(shared: SharedTile) -> str:
    """A shared tile's arrangement in words."""
    rows = f"{'columns' if shared.block else 'rows'} of {shared.pitch} bytes"
    masks = ", ".join(f"{1 << bit}: {mask}" for bit, mask in enumerate(shared.masks) if mask)
    return f"{rows}, bits of their number xor the offset ({masks})" if masks else f"{rows}, not swizzled"


def name_of(value: Value, lw: Lowering) -> str:
    """What the user calls a value, else the op that makes it."""
    if value.name:
        return value.name
    op = lw.definitions.get(value)
    return op.name if op is not None else "value"
