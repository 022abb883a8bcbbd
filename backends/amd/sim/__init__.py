"""Instruction-level simulator of AMD CDNA3 (gfx942) and CDNA4 (gfx950) GPUs."""

from __future__ import annotations

from warpwave.backends.amd.sim._errors import LoadError, SimError
from warpwave.backends.amd.sim._program import Program, load

__all__ = ["LoadError", "Program", "SimError", "load"]
