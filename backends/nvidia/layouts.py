"""Every tile of a kernel with its place, for `warpwave show --layout`: threads and registers, shared-memory banks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from warpwave.backends.nvidia.arch import Target
from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.lower import emit
from warpwave.tiles.drawing.data import Placement, TileLayout
from warpwave.tiles.errors import Loc
from warpwave.tiles.ir import Kernel, Value, walk
from warpwave.tiles.simt.drawn import lanes_of, name_of, swizzle_text, tile_offsets

BANKS = 32


def tile_layouts(kernel: Kernel, target: Target, options: Mapping[str, Any]) -> list[TileLayout]:
    """Register and shared tiles in program order, those that are laid out alike under one name once."""
    lw = emit(kernel, target, dict(options))
    found: dict[tuple[object, ...], TileLayout] = {}
    for value, loc in _values(lw):
        name = name_of(value, lw)
        if value in lw.layouts:
            layout = lw.layouts[value]
            drawn = TileLayout(name, value.tile, loc, target.full_name, lanes_of(layout, "warp"))
            found.setdefault((name, value.tile, layout), drawn)
        if value in lw.shared:
            shared = lw.shared[value]
            placement = Placement(tile_offsets(shared), BANKS, swizzle_text(shared), ())
            drawn = TileLayout(name, value.tile, loc, target.full_name, placement=placement)
            found.setdefault((name, value.tile, shared.masks, shared.pitch), drawn)
    return list(found.values())


def _values(lw: NvidiaLowering) -> Iterator[tuple[Value, Loc | None]]:
    """Values with the place of the op that makes them, a loop's carried ones with the loop's."""
    for op in walk(lw.kernel.body):
        for value in [*op.results, *(a for region in op.regions for a in region.args)]:
            yield value, op.loc
