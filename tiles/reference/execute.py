"""Runs a kernel in the semantics of the numerics contract."""

from __future__ import annotations

from collections.abc import Mapping

from warpwave.tiles.ir import Kernel
from warpwave.tiles.reference.contract import Contract
from warpwave.tiles.reference.interpreter import Argument, BlockOrder, Interpreter


def execute(kernel: Kernel, arguments: Mapping[str, Argument], *, block_order: BlockOrder | None = None) -> None:
    """Execute `kernel` on NumPy arrays (any strides) and numbers, by parameter name; outputs in place.

    `block_order` turns the list of all block coordinates into the order in which they run, e.g. `reversed`.
    """
    Interpreter(kernel, Contract(), arguments).run(block_order)
