"""Where and how a tile lies in LDS: padded and swizzled for the products that read it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from warpwave.backends.amd.arch import DIRECT, WAVE, Mfma, Target
from warpwave.backends.amd.lds import Read, solve
from warpwave.backends.amd.lower.depth import DepthOrder, can_transpose, depth_order
from warpwave.tiles.dtypes import DType
from warpwave.tiles.ir import Op, Value, walk
from warpwave.tiles.simt.context import SharedTile
from warpwave.tiles.simt.layout import Coord, transposing_layout
from warpwave.tiles.types import TileType

if TYPE_CHECKING:
    from warpwave.backends.amd.lower.context import AmdLowering


def place_shared(lw: AmdLowering, value: Value) -> SharedTile:
    """Reserve shared memory for a tile, swizzled for the products that read it."""
    tile = value.tile
    uses = [op for op in walk(lw.kernel.body) if op.name == "mma" and value in op.operands[1:]]
    rows, cols = padded_extent(lw, value, uses)
    lw.has_padding |= (rows, cols) != (1, *tile.shape)[-2:]
    block = _transposing_block(lw, value, uses)
    if block:
        rows, cols = cols, rows
    size = tile.dtype.nbytes
    pitch = -(-cols * size // 16) * 16
    accesses = [read for op in uses for read in operand_reads(lw, op, value, transposed=block is not None)]
    chunk = 16
    if block:
        accesses.append(_column_write(lw, tile, block))
        chunk = max(access.access.width for access in accesses)
    fixed = _fixed_rows(lw, uses, value) if not block else 0
    # a swizzle that repeats from block to block of the instruction, so that one address serves all of them
    period = min((lw.plan.mmas[op].mfma.m for op in uses), default=rows)
    masks = solve(pitch, size, min(rows, period), accesses, chunk, fixed).swizzle.masks if accesses else ()
    shared = SharedTile(lw.allocate(pitch * rows), pitch, masks, tile.dtype, tile.shape, block=block)
    lw.shared[value] = shared
    return shared


def _transposing_block(lw: AmdLowering, value: Value, uses: Sequence[Op]) -> Coord | None:
    """What a lane exchanges rows and columns of, if the tile is stored so; None if it is stored as it is.

    That is done to tiles that go through registers and are read along their columns only, where the target has
    no transposing read. A block has 8 bytes in a row, as loaded, and 4 or 8 in a column, as written.
    """
    tile, made_by = value.tile, lw.definitions.get(value)
    loaded = tile.space == "shared" and made_by is not None and made_by.name == "load"
    everything = [op for op in walk(lw.kernel.body) if value in op.operands]
    if not loaded or DIRECT in lw.target.direct_to_lds_widths or not uses or len(everything) != len(uses):
        return None
    if any(_reads_along_rows(op, value) or op.operands.count(value) > 1 for op in uses):
        return None
    block = 4 if tile.dtype.nbytes == 1 else 8 // tile.dtype.nbytes, 8 // tile.dtype.nbytes
    return block if tile.shape[0] % block[0] == 0 and tile.shape[1] % block[1] == 0 else None


def _column_write(lw: AmdLowering, tile: TileType, block: Coord) -> Read:
    """How lanes write the columns of their blocks, which are rows in LDS."""
    layout = transposing_layout((tile.shape[0], tile.shape[1]), tile.dtype.nbytes, block, WAVE, lw.waves)
    first = layout.coordinates[0, :, 0]
    access = lw.target.lds[f"ds_write_b{8 * block[0] * tile.dtype.nbytes}"]
    return Read(access, first[:, 1], first[:, 0], block[1])


def padded_extent(lw: AmdLowering, value: Value, uses: Sequence[Op]) -> tuple[int, int]:
    """Rows and columns that products read, padding of the last matrix instruction included.

    Of a chain's second product that is the padding of the first one's columns too, whose order of depth it takes.
    """
    shape = (1, *value.tile.shape)[-2:]
    rows, cols = shape
    for op in uses:
        across = lw.layout(op.result).extent[0 if value is op.operands[1] else 1]
        depth_axis = int(_reads_along_rows(op, value))
        depth = depth_order(lw, op)[0].reach
        wanted = (depth, across) if depth_axis == 0 else (across, depth)
        rows, cols = max(rows, wanted[0]), max(cols, wanted[1])
    return rows, cols


def _reads_along_rows(op: Op, value: Value) -> bool:
    """Whether the product sums along the tile's rows."""
    return bool(not op.attrs["transpose_a"] if value is op.operands[1] else op.attrs["transpose_b"])


def operand_reads(lw: AmdLowering, op: Op, value: Value, *, transposed: bool) -> list[Read]:
    """The LDS accesses of one fragment, in rows and columns of the LDS; `transposed` if those are exchanged there."""
    order, _ = depth_order(lw, op)
    mfma, dtype = lw.plan.mmas[op].mfma, value.tile.dtype
    if _reads_along_rows(op, value) != transposed:
        return [row_read(lw.target, order, mfma, dtype)]
    return [transposing_read(lw.target, order, mfma, dtype)] if can_transpose(lw.target, order, dtype) else []


def _fixed_rows(lw: AmdLowering, uses: Sequence[Op], value: Value) -> int:
    """Row bits that differ between a lane's transposing reads, if the tile is read in that way only.

    A swizzle that ignores them leaves such reads one address, and a constant to add.
    """
    if any(_reads_along_rows(op, value) for op in uses):
        return 0
    run = 8 // value.tile.dtype.nbytes
    orders = [depth_order(lw, op)[0] for op in uses]
    return functools.reduce(operator.or_, (order.constant_bits(run) for order in orders), 0)


def row_read(target: Target, order: DepthOrder, mfma: Mfma, dtype: DType) -> Read:
    """A read along the rows of an operand, whose lanes take one row each."""
    width = max(4, order.run(dtype) * dtype.nbytes)
    first = order.of_lanes + order.merged[0][0]
    return Read(target.lds[f"ds_read_b{8 * width}"], np.arange(WAVE) % mfma.m, first)


def transposing_read(target: Target, order: DepthOrder, mfma: Mfma, dtype: DType) -> Read:
    """A transposing read of an operand whose depth runs across rows: what each lane brings."""
    run, lane = 8 // dtype.nbytes, np.arange(WAVE)
    across = 16 // run
    rows = order.of_lanes + lane % 16 // across + order.merged[0][0]
    cols = lane % mfma.m // 16 * 16 + lane % across * run
    return Read(target.lds[f"ds_read_b64_tr_b{dtype.bits}"], rows, cols)
