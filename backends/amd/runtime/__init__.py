"""Launching built kernels on AMD GPUs through hip-python; imports it only when there may be a device."""

from __future__ import annotations

from warpwave.backends.amd.runtime.streams import use_stream

__all__ = ["use_stream"]
