"""Where and how a tile lies in LDS: padded and swizzled for the products that read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from warpwave.backends.amd.arch import WAVE, Mfma
from warpwave.backends.amd.lds import Read, solve
from warpwave.tiles.ir import Op, Value, walk
from warpwave.tiles.simt.context import SharedTile

if TYPE_CHECKING:
    from warpwave.backends.amd.lower.context import AmdLowering


def place_shared(lw: AmdLowering, value: Value) -> SharedTile:
    """Reserve shared memory for a tile, swizzled for the products that read it."""
    tile = value.tile
    uses = [op for op in walk(lw.kernel.body) if op.name == "mma" and value in op.operands[1:]]
    rows, cols = padded_extent(lw, value, uses)
    size = tile.dtype.nbytes
    pitch = -(-cols * size // 16) * 16
    reads = [read for op in uses for read in _operand_reads(lw, op, value)]
    masks = solve(pitch, size, rows, reads, 16).swizzle.masks if reads else ()
    shared = SharedTile(lw.allocate(pitch * rows), pitch, masks, tile.dtype, tile.shape)
    lw.shared[value] = shared
    return shared


def padded_extent(lw: AmdLowering, value: Value, uses: Sequence[Op]) -> tuple[int, int]:
    """Rows and columns that products read, padding of the last matrix instruction included."""
    shape = (1, *value.tile.shape)[-2:]
    rows, cols = shape
    for op in uses:
        layout, mfma = lw.layout(op.result), lw.plan.mmas[op].mfma
        is_a = value is op.operands[1]
        across = layout.extent[0 if is_a else 1]
        depth_axis = int(not op.attrs["transpose_a"]) if is_a else int(op.attrs["transpose_b"])
        depth = -(-shape[depth_axis] // mfma.k) * mfma.k
        wanted = (depth, across) if depth_axis == 0 else (across, depth)
        rows, cols = max(rows, wanted[0]), max(cols, wanted[1])
    return rows, cols


def _operand_reads(lw: AmdLowering, op: Op, value: Value) -> list[Read]:
    """The LDS accesses of one fragment, for the swizzle solver."""
    mfma = lw.plan.mmas[op].mfma
    is_a = value is op.operands[1]
    depth_last = (not op.attrs["transpose_a"]) if is_a else op.attrs["transpose_b"]
    if not depth_last:
        return []
    return [_row_read(lw, mfma, value)]


def _row_read(lw: AmdLowering, mfma: Mfma, value: Value) -> Read:
    lane = np.arange(WAVE)
    per_lane = mfma.k * mfma.m // WAVE // mfma.runs
    width = min(16, max(4, per_lane * value.tile.dtype.nbytes))
    access = lw.target.lds[f"ds_read_b{8 * width}"]
    return Read(access, lane % mfma.m, lane // mfma.m * per_lane)
