"""The reference: an interpreter of the IR in the numerics contract's semantics, and its float64 oracle."""

from __future__ import annotations

from warpwave.tiles.reference.accuracy import CONTRACT, Allowance, Numerics
from warpwave.tiles.reference.backend import BACKEND
from warpwave.tiles.reference.contract import Contract
from warpwave.tiles.reference.execute import execute, launch_grid
from warpwave.tiles.reference.interpreter import Extents, Interpreter
from warpwave.tiles.reference.oracle import Estimate, Oracle, oracle

__all__ = [
    "BACKEND",
    "CONTRACT",
    "Allowance",
    "Contract",
    "Estimate",
    "Extents",
    "Interpreter",
    "Numerics",
    "Oracle",
    "execute",
    "launch_grid",
    "oracle",
]
