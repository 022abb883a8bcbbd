"""Plausible bugs of a backend, put in one at a time, and whether the profiles notice them."""

from __future__ import annotations

from warpwave.conformance.defects.defect import Defect
from warpwave.conformance.defects.hunt import Catch, hunt
from warpwave.conformance.defects.registry import DEFECTS

__all__ = ["DEFECTS", "Catch", "Defect", "hunt"]
