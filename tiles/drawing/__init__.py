"""Pictures of where a tile's elements lie: lanes and registers, banks of shared memory, and accesses to them.

Backends may bring pictures of their own, of which `Chart` is the form.
"""

from __future__ import annotations

from warpwave.tiles.drawing.data import Access, Chart, Lanes, Placement, TileLayout
from warpwave.tiles.drawing.page import draw, write

__all__ = ["Access", "Chart", "Lanes", "Placement", "TileLayout", "draw", "write"]
