"""Products by wgmma: descriptors of swizzled panels, asynchronous groups, waits where results are first used."""

from __future__ import annotations

from warpwave.backends.nvidia.layout import operand_layout
from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.operands import (
    FORMATS,
    Operand,
    depth_of,
    is_in_place,
    is_zero,
    shared_operand,
    start_accumulator,
    warp_origin,
)
from warpwave.tiles.ir import Op
from warpwave.tiles.simt.assign import is_laid_out
from warpwave.tiles.simt.context import SharedTile
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
    steps = depth_of(op) // second.per_step
    blocks = sorted({i[0] // 64 * 64 for i in layout.items})
    columns = 2 * layout.width
    across = len(layout.items) // (len(blocks) * layout.width)
    group = "__shfl_sync(~0u, warp_id >> 2, 0)"  # the same for all lanes, as the compiler can see
    lw.body.line("{")
    if first:
        lw.body.line(f"const u64 a_panels = {_descriptor(first)};")
        lw.body.line(f"const int a_row = {_group_origin(lw, op, 0, group)};")
    else:
        lw.body.line(f"vec<u32, 4> a[{len(blocks) * steps}];")
        with lw.body.each(len(blocks) * steps):
            lw.body.line(f"a[i] = bits<vec<u32, 4>>({held}.v[i]);")
    lw.body.line(f"const u64 b_panels = {_descriptor(second)};")
    lw.body.line(f"const int b_col = {_group_origin(lw, op, 1, group)};")
    if not fresh and name not in lw.flying:
        lw.body.line(f"pin({name});")
    lw.body.line("ptx::wgmma_fence();")
    with lw.body.each(steps, "s"), lw.body.each(len(blocks), "m"), lw.body.each(across, "n"):
        target = f"{name}.v[m * {across} + n].e"
        b = f"b_panels + {_advance(second, f'b_col + n * {columns}', 's')}"
        accumulate = "s > 0" if fresh else "true"
        lw.body.line(f"ptx::wgmma<{_formats(op, first, second)}>({target}, {_a(first, steps)}, {b}, {accumulate});")
    lw.body.line("ptx::wgmma_commit();")
    lw.body.line("}")
    lw.groups += 1
    lw.pending[name] = lw.groups


def _start(lw: NvidiaLowering, op: Op, fresh: bool) -> str:
    """The result's variable; what a product from zero starts with is never read."""
    if fresh and not is_in_place(lw, op):
        return lw.declare(op.result)
    return start_accumulator(lw, op)


def _a(first: Operand | None, steps: int) -> str:
    if first is None:
        return f"a[m * {steps} + s].e"
    return f"a_panels + {_advance(first, 'a_row + m * 64', 's')}"


def _formats(op: Op, first: Operand | None, second: Operand) -> str:
    names = [f"ptx::{FORMATS[v.tile.dtype.name]}" for v in op.operands[1:]]
    transposed = [str(int(not x.depth_last)) for x in (first, second) if x is not None]
    return ", ".join(names + transposed)


def _group_origin(lw: NvidiaLowering, op: Op, axis: int, group: str) -> str:
    """Row or column at which this warpgroup's part begins: the first digit counts the warps inside it."""
    return warp_origin(lw, lw.layout(op.result), axis, skip=1).replace("(warp_id / 4)", f"({group})")


def _descriptor(operand: Operand) -> str:
    """Of the tile's beginning. The leading offset is used only where k runs across the rows of the panels."""
    shared: SharedTile = operand.shared
    leading = 16 if operand.depth_last else shared.panels
    return f"ptx::wgmma_descriptor(smem_at + {shared.offset}, {leading}, {8 * shared.pitch}, {shared.pitch})"


def _advance(operand: Operand, place: str, step: str) -> str:
    """C expression, in 16-byte units, from the tile's beginning to a place (row of a, column of b) and a step of k."""
    shared = operand.shared
    if operand.depth_last:
        per_panel = shared.pitch // 32
        along = f"{step} / {per_panel} * {shared.panels} + {step} % {per_panel} * 32"
        return f"(u64)((({place}) * {shared.pitch} + {along}) >> 4)"
    columns = shared.pitch // operand.dtype.nbytes
    return f"(u64)((({place}) / {columns} * {shared.panels} + {step} * {operand.per_step * shared.pitch}) >> 4)"
