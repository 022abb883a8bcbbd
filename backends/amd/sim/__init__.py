"""Instruction-level simulator of AMD CDNA3 (gfx942) and CDNA4 (gfx950) GPUs."""

from __future__ import annotations

from warpwave.backends.amd.sim._code_object import disassemble
from warpwave.backends.amd.sim._errors import LoadError, SimError
from warpwave.backends.amd.sim._hip_runtime import HipRuntime, HipRuntimeError, hip_runtime
from warpwave.backends.amd.sim._packing import undefined
from warpwave.backends.amd.sim._program import Program, load
from warpwave.backends.amd.sim._report import InstructionReport, Report

__all__ = [
    "HipRuntime",
    "HipRuntimeError",
    "InstructionReport",
    "LoadError",
    "Program",
    "Report",
    "SimError",
    "disassemble",
    "hip_runtime",
    "load",
    "undefined",
]
