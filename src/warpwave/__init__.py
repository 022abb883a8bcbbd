"""Warpwave: one tile kernel source for NVIDIA and AMD GPUs, and proof that the two agree."""

from __future__ import annotations

from warpwave.tiles import *  # noqa: F403
from warpwave.tiles import __all__ as __all__
from warpwave.tiles import abs as abs
from warpwave.tiles import max as max
from warpwave.tiles import min as min
from warpwave.tiles import print as print
from warpwave.tiles import range as range
from warpwave.tiles import round as round
from warpwave.tiles import sum as sum
