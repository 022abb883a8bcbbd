"""The reference: an interpreter of the IR in the numerics contract's semantics, and its float64 oracle."""

from __future__ import annotations

from warpwave.tiles.reference.backend import BACKEND
from warpwave.tiles.reference.execute import execute

__all__ = ["BACKEND", "execute"]
