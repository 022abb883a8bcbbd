"""Stores of accumulators through shared memory by the bulk copy engine, while the warps go on.

Each warp has two buffers of 16 rows by one swizzled panel; it fills one with stmatrix while the engine reads the
other, and needs no other warp. What lies outside the tensor is not written. Tensors that the engine does not take are
written from the same buffers by the warps themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from warpwave.backends.nvidia.layout import LANES, ROWS
from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.operands import warp_origin
from warpwave.backends.nvidia.lower.place import ALIASES
from warpwave.backends.nvidia.lower.rings import (
    begins_aligned,
    has_map,
    map_name,
    map_number,
    pipelines,
    tile_place,
)
from warpwave.backends.nvidia.lowered import TensorMap
from warpwave.tiles.ir import Block, Op, Value, walk
from warpwave.tiles.simt.memory import Window, lower_store, open_window

BUFFERS = 2
BUFFER_BYTES = ROWS * 128


def posted_stores(lw: NvidiaLowering) -> set[Op]:
    """Stores that can go this way: of 16-bit accumulators, to tensors that this kernel does not read."""
    ops = list(walk(lw.kernel.body))
    if any(op.name == "barrier" for op in ops):
        return set()
    read = {op.operands[0] for op in ops if op.name in ("load", "atomic_add")}
    return {op for op in ops if op.name == "store" and op.operands[0] not in read and _suits(lw, op)}


def outbox_bytes(lw: NvidiaLowering) -> int:
    """Size of all warps' buffers."""
    return lw.waves * BUFFERS * BUFFER_BYTES


def stores_come_last(lw: NvidiaLowering) -> bool:
    """Whether rings are no longer used when these stores run: then they may use the rings' memory."""
    ops = lw.kernel.body.ops
    loops = [ops.index(op) for op in ops if any(True for _ in pipelines(Block([], [op])))]
    at_top = all(op in ops for op in lw.posted)
    return not lw.plan.persistent and at_top and min(ops.index(op) for op in lw.posted) > max(loops, default=-1)


def reuse_rings(lw: NvidiaLowering) -> int:
    """Where the buffers lie in the rings' memory; what is missing is allocated behind it."""
    ring = next(iter(lw.rings.values()))
    start = ring.tiles[0].base
    lw.allocate(max(0, start + outbox_bytes(lw) - lw.shared_bytes))
    lw.outbox_in_rings = True
    return start


def _suits(lw: NvidiaLowering, op: Op) -> bool:
    tensor, value, *coords = op.operands
    tile = value.tile
    if tile.rank != 2 or tile.dtype.bits != 16 or tile.space != "register" or not has_map(lw, tensor):
        return False
    layout = lw.layout(value)
    whole = layout.lanes == LANES and layout.extent == tile.shape and not layout.wave_copies
    return whole and begins_aligned(lw, op, coords, tile)


def lower_posted_store(lw: NvidiaLowering, op: Op) -> None:
    """Panel after panel, by the engine or, where a tensor is not for it, along the tensor's rows."""
    tensor, value, *_ = op.operands
    name = lw.kernel.param_names[lw.kernel.params.index(tensor)]
    body, panels = lw.body, _panels(lw, value)
    target = map_name(lw, map_number(lw, TensorMap(name, tuple(op.attrs["axes"]), ROWS, panels.cols, 2 * panels.cols)))
    if lw.outbox_in_rings:
        lw.barrier()  # all warps are done with what they read there
        lw.outbox_in_rings = False
    out = lw.own_name(f"{name}_out")
    buffers = f"constexpr shared_buffers<{panels.kind}, {lw.outbox}, {BUFFER_BYTES}> {out};"
    with body.block(f"if constexpr (tma_{name})"):
        body.line(buffers)
        _store_by_engine(lw, op, panels, out, target)
    with body.block(f"else if constexpr ({lw.rows(tensor)})"):
        body.line(buffers)
        _store_along_rows(lw, op, panels, out)
    with body.block("else"):
        lower_store(lw, op)


@dataclass(frozen=True)
class _Panels:
    """How a warp's part of an accumulator is cut: blocks of 16 rows that begin at `blocks`, `across` panels each."""

    blocks: list[int]
    across: int
    cols: int
    kind: str  # of a buffer


def _panels(lw: NvidiaLowering, value: Value) -> _Panels:
    layout = lw.layout(value)
    blocks = sorted({i[0] // ROWS * ROWS for i in layout.items})
    cols = 2 * len(layout.items) // len(blocks)
    panel = next(c for c in (64, 32, 16) if cols % c == 0)
    return _Panels(blocks, cols // panel, panel, f"{ALIASES[value.tile.dtype.name]}<{ROWS}, {panel}>")


def _open(lw: NvidiaLowering, op: Op) -> Window:
    """Where the warp's part begins."""
    tensor, value, *coords = op.operands
    window = open_window(lw, tensor, coords, value.tile, op)
    row, col = (warp_origin(lw, lw.layout(value), axis) for axis in (0, 1))
    lw.body.line(f"const int warp_row = {row}, warp_col = {col};")
    return window


def _store_by_engine(lw: NvidiaLowering, op: Op, panels: _Panels, out: str, target: str) -> None:
    _, value, *coords = op.operands
    body, source, window = lw.body, lw.name(value), _open(lw, op)
    left = 1 if len(panels.blocks) * panels.across % BUFFERS == 0 else 0  # may still read when a buffer is used again
    with body.each(len(panels.blocks), "m"), body.each(panels.across, "panel"):
        body.line(f"const int turn = (m * {panels.across} + panel) % {BUFFERS};")
        body.line(f"const auto buffer = {out}[warp_id * {BUFFERS} + turn];")
        body.line(f"if (lane == 0) tma::store_async_read_wait<{left}>();")
        body.line("__syncwarp();")
        body.line(f"warp::store_panel(buffer, {source}, m, panel);")
        body.line("fence_async_shared();")
        body.line("__syncwarp();")
        row = f"{window.origins[0]} + warp_row + {lw.table(panels.blocks)}[m]"
        col = f"{window.origins[1]} + warp_col + panel * {panels.cols}"
        at = ", ".join([*tile_place(lw, op, coords)[:-2], row, col])
        with body.block("if (lane == 0)"):
            body.line(f"tma::store_async({target}, buffer, element({at}));")


def _store_along_rows(lw: NvidiaLowering, op: Op, panels: _Panels, out: str) -> None:
    """Whole 16-byte units wherever rows begin: an accumulator's own pairs would be sectors of their own each."""
    body, source, window = lw.body, lw.name(op.operands[1]), _open(lw, op)
    together = math.gcd(panels.across, BUFFERS)
    rows, cols = (f"{window.tensor}.extents[{axis}]" for axis in window.axes)
    with body.each(len(panels.blocks), "m"), body.each(panels.across // together, "part"):
        body.line("__syncwarp();  // what was in the buffers has been read")
        for n in range(together):
            body.line(f"warp::store_panel({out}[warp_id * {BUFFERS} + {n}], {source}, m, part * {together} + {n});")
        body.line("__syncwarp();")
        body.line(f"const int row = warp_row + {lw.table(panels.blocks)}[m];")
        body.line(f"const int col = warp_col + part * {together * panels.cols};")
        body.line(f"write_rows<{panels.kind}, {together}, {BUFFER_BYTES}>(")
        body.line(f"    address_of({out}[warp_id * {BUFFERS}]), lane,")
        body.line(f"    {window.tensor}.at({window.element} + row * {window.stride(0)} + col), {window.stride(0)},")
        limit = rows if window.valid == "true" else f"{window.valid} ? {rows} : 0"
        body.line(f"    {window.origins[0]} + row, {limit}, {window.origins[1]} + col, {cols});")
