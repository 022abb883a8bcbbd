"""Warpwave: one tile kernel source for NVIDIA and AMD GPUs, and proof that the two agree."""

from __future__ import annotations
