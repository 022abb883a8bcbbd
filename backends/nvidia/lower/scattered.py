"""Stores of accumulators to tensors whose rows are not aligned.

An accumulator's lanes write pairs of elements in eight rows at a time. Where 16 bytes cannot be written at once, each
of these is a sector of its own; so the tile goes through shared memory first, and warps write along the rows.
"""

from __future__ import annotations

from warpwave.backends.nvidia.layout import LANES
from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.tiles.ir import Op, Value
from warpwave.tiles.simt.layout import blocked_layout
from warpwave.tiles.simt.memory import lower_store
from warpwave.tiles.simt.shared import read_shared, to_shared

LEAST_COLUMNS = 32  # a row of them is worth the way


def is_scattered(lw: NvidiaLowering, op: Op) -> bool:
    """Whether an accumulator of 16-bit elements is stored along the rows of a tensor."""
    _, value, *coords = op.operands
    tile = value.tile
    if (
        lw.plan.producer
        or tile.rank != 2
        or tile.dtype.bits != 16
        or tile.space != "register"
        or tile.shape[1] < LEAST_COLUMNS
    ):
        return False
    return lw.layout(value).lanes == LANES and op.attrs["axes"][-1] == len(coords) - 1


def lower_scattered_store(lw: NvidiaLowering, op: Op) -> None:
    """Two ways, by the tensor."""
    tensor, value, *coords = op.operands
    lw.enter_region()
    with lw.body.block(f"if constexpr ({lw.wide(tensor)})"):
        lower_store(lw, op)
    with lw.body.block("else"), lw.shared_scope():
        along = Value(value.tile)
        lw.layouts[along] = blocked_layout(value.tile.shape, lw.machine.lanes, lw.waves, 1)
        between = to_shared(lw, value)
        read_shared(lw, between, lw.declare(along), lw.layout(along), value.tile)
        lower_store(lw, Op("store", [tensor, along, *coords], op.attrs, [], [], op.loc))
    lw.enter_region()
