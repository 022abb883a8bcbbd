"""The intermediate representation that capture builds, passes change and backends consume."""

from __future__ import annotations

from warpwave.tiles.ir.builder import Builder
from warpwave.tiles.ir.clone import clone
from warpwave.tiles.ir.core import Block, Kernel, Op, Value, walk
from warpwave.tiles.ir.opdefs import OPS, OpDef
from warpwave.tiles.ir.printer import print_kernel
from warpwave.tiles.ir.verifier import host_values, verify

__all__ = [
    "OPS",
    "Block",
    "Builder",
    "Kernel",
    "Op",
    "OpDef",
    "Value",
    "clone",
    "host_values",
    "print_kernel",
    "verify",
    "walk",
]
