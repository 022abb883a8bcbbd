"""Products by wgmma: descriptors of swizzled panels, asynchronous groups, waits where results are first used."""

from __future__ import annotations

from warpwave.backends.nvidia.layout import operand_layout
from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.operands import (
    Operand,
    depth_of,
    is_in_place,
    is_zero,
    shared_operand,
    start_accumulator,
)
from warpwave.backends.nvidia.lower.place import NamedTile, padded_extent, st_type
from warpwave.tiles.ir import Op
from warpwave.tiles.simt.assign import is_laid_out
from warpwave.tiles.simt.convert import convert


def lower_wgmma(lw: NvidiaLowering, op: Op) -> None:
    """Issue all steps as one group; the result is pending until its first use."""
    a, layout = op.operands[1], lw.layout(op.result)
    registers = a.tile.dtype.bits == 16 and not op.attrs["transpose_a"] and is_laid_out(a)
    held = convert(lw, a, operand_layout(depth_of(op), layout)) if registers else None
    first = None if held else shared_operand(lw, op, 0)
    second = shared_operand(lw, op, 1)
    fresh = is_zero(lw, op.operands[0])
    name = _start(lw, op, fresh)
    order = "A" + "t" * bool(op.attrs["transpose_a"]) + "B" + "t" * bool(op.attrs["transpose_b"])
    name_of_op = f"{'mm' if fresh else 'mma'}_{'r' if held else ''}{order}"
    flying = "_in_flight" if name in lw.flying and not fresh else ""
    first_text = _object(lw, first) if first else f"{held}, {_groups_down(lw, op)}"
    lw.body.line(f"warpgroup::{name_of_op}{flying}({name}, {first_text}, {_object(lw, second)});")
    lw.groups += 1
    lw.pending[name] = lw.groups


def _start(lw: NvidiaLowering, op: Op, fresh: bool) -> str:
    """The result's variable; what a product from zero starts with is never read."""
    if fresh and not is_in_place(lw, op):
        return lw.declare(op.result)
    return start_accumulator(lw, op)


def _groups_down(lw: NvidiaLowering, op: Op) -> int:
    """Warpgroups along the rows of a product."""
    return lw.plan.products[op].over[0] // 4


def _object(lw: NvidiaLowering, operand: Operand) -> str:
    """C expression of an operand's tile in shared memory."""
    shared, (rows, cols) = operand.shared, padded_extent(lw, operand.value)
    if isinstance(shared, NamedTile) and shared.name:
        return shared.name
    stage = shared.shift.removesuffix(f" * {rows * cols * shared.dtype.nbytes}")
    name = lw.own_name(f"{operand.value.name or 'ab'[operand.axis]}".removesuffix("_tile") + "_tile")
    lw.body.line(f"constexpr shared_tiles<{st_type(shared, extent=(rows, cols))}, {shared.base}> {name};")
    return f"{name}[{0 if stage == shared.shift else stage}]"
