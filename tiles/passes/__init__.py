"""Canonicalising passes: each a function that changes a kernel in place and leaves valid IR."""

from __future__ import annotations

from warpwave.tiles.ir import Kernel
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


def canonicalise(kernel: Kernel) -> None:
    """The passes in the order that lets each profit from the ones before it."""
    fold_constants(kernel)
    merge_common_ops(kernel)
    drop_dead_carries(kernel)
    eliminate_dead_ops(kernel)
    hoist_invariants(kernel)
    merge_common_ops(kernel)
    eliminate_dead_ops(kernel)
