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


def launch_grid(kernel: Kernel, arguments: Mapping[str, Argument]) -> tuple[int, ...]:
    """Sizes of the grid for these arguments (`Extents` stands for a tensor), after checking launch conditions.

    () for a kernel of one block. CheckFailed, at the user's line, if a `ww.check` before the grid is false.
    """
    return Interpreter(kernel, Contract(), arguments).launch_grid()
