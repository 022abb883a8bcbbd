"""The reference: an interpreter of the IR in the numerics contract's semantics, and its float64 oracle."""

from __future__ import annotations

from warpwave.tiles.reference.backend import BACKEND
from warpwave.tiles.reference.execute import execute, launch_grid
from warpwave.tiles.reference.interpreter import Extents
from warpwave.tiles.reference.oracle import Estimate, oracle

__all__ = ["BACKEND", "Estimate", "Extents", "execute", "launch_grid", "oracle"]
