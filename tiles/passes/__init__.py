"""Canonicalising passes: each a function that changes a kernel in place and leaves valid IR."""

from __future__ import annotations

from warpwave.tiles.ir import Kernel, walk
from warpwave.tiles.passes.drop_dead_carries import drop_dead_carries
from warpwave.tiles.passes.eliminate_dead_ops import eliminate_dead_ops
from warpwave.tiles.passes.fold_constants import fold_constants
from warpwave.tiles.passes.hoist_invariants import hoist_invariants
from warpwave.tiles.passes.merge_common_ops import merge_common_ops

__all__ = [
    "canonicalise",
    "drop_dead_carries",
    "eliminate_dead_ops",
    "fold_constants",
    "hoist_invariants",
    "merge_common_ops",
]


_ORDER = (fold_constants, hoist_invariants, merge_common_ops, drop_dead_carries, eliminate_dead_ops)


def canonicalise(kernel: Kernel) -> None:
    """All passes, again as long as one of them makes the kernel smaller and so leaves work to another."""
    size = -1
    while size != (size := _size(kernel)):
        for run in _ORDER:
            run(kernel)


def _size(kernel: Kernel) -> int:
    return sum(1 + len(op.operands) + len(op.results) for op in walk(kernel.body))
