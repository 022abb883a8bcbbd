"""Seeded defects: each changes the backend while it is in, and only then; the quick profile notices them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import warpwave as ww
from warpwave.backends.amd import build, compilation
from warpwave.backends.amd.arch import TARGETS
from warpwave.conformance.defects import DEFECTS, hunt
from warpwave.kernels.gemm import gemm

ROOT = Path(__file__).parent.parent.parent
QUICK_SHARE = 0.95
FEW = ("comparison-off-by-one", "half-away", "lane-map-2", "last-block-lost")  # of each kind, by small cases
