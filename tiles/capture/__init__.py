"""From a Python function to the IR: see `interpreter` for the idea, `regions` for control flow."""

from __future__ import annotations

from warpwave.tiles.capture.capture import Captured, capture

__all__ = ["Captured", "capture"]
