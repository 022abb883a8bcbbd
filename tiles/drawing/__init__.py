"""Pictures of where a tile's elements lie: lanes and registers, banks of shared memory, and accesses to them."""

from __future__ import annotations

from warpwave.tiles.drawing.data import Access, Lanes, Placement, TileLayout
from warpwave.tiles.drawing.page import draw

__all__ = ["Access", "Lanes", "Placement", "TileLayout", "draw"]
