"""Every tile of a kernel with its place, for `warpwave show --layout`: threads and registers, shared-memory banks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warpwave.backends.nvidia.arch import Target
from warpwave.backends.nvidia.lower.lower import emit
from warpwave.tiles.drawing.data import Placement, TileLayout
from warpwave.tiles.ir import Kernel, Value
from warpwave.tiles.simt.context import SharedTile
from warpwave.tiles.simt.drawn import drawn_tiles, swizzle_text, tile_offsets

BANKS = 32


def tile_layouts(kernel: Kernel, target: Target, options: Mapping[str, Any]) -> list[TileLayout]:
    """Register and shared tiles in program order, those that are laid out alike under one name once."""
    lw = emit(kernel, target, dict(options))
    return drawn_tiles(lw, target.full_name, "warp", _placement)


def _placement(_: Value, shared: SharedTile) -> Placement:
    return Placement(tile_offsets(shared), BANKS, swizzle_text(shared), ())
