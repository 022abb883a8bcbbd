"""Launching built kernels on NVIDIA GPUs through cuda-bindings, imported only when there may be a device."""

from __future__ import annotations

from warpwave.backends.nvidia.runtime.streams import use_stream

__all__ = ["use_stream"]
