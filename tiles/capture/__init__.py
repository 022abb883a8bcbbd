"""From a Python function to the IR: see `interpreter` for the idea, `regions` for control flow."""

from __future__ import annotations

from warpwave.tiles.capture.capture import Captured, capture
from warpwave.tiles.capture.kept import kept_or_captured

__all__ = ["Captured", "capture", "kept_or_captured"]
