"""Stores of accumulators through shared memory by the bulk copy engine, while the warps go on.

Each warp has two buffers of 16 rows by one swizzled panel; it fills one with stmatrix while the engine reads the
other, and needs no other warp. What lies outside the tensor is not written.
"""

from __future__ import annotations

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
from warpwave.tiles.ir import Block, Op, walk
from warpwave.tiles.simt.memory import lower_store, open_window

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
    """Panel after panel; tensors that the engine does not take are written by the threads."""
    tensor, value, *coords = op.operands
    name = lw.kernel.param_names[lw.kernel.params.index(tensor)]
    body, layout, source = lw.body, lw.layout(value), lw.name(value)
    blocks = sorted({i[0] // ROWS * ROWS for i in layout.items})
    cols = 2 * len(layout.items) // len(blocks)
    panel = next(c for c in (64, 32, 16) if cols % c == 0)
    panels = cols // panel
    target = map_name(lw, map_number(lw, TensorMap(name, tuple(op.attrs["axes"]), ROWS, panel, 2 * panel)))
    left = 1 if len(blocks) * panels % BUFFERS == 0 else 0  # copies that may still read when a buffer is used again
    if lw.outbox_in_rings:
        lw.barrier()  # all warps are done with what they read there
        lw.outbox_in_rings = False
    with body.block(f"if constexpr (tma_{name})"):
        out, kind = lw.own_name(f"{name}_out"), f"{ALIASES[value.tile.dtype.name]}<{ROWS}, {panel}>"
        body.line(f"constexpr shared_buffers<{kind}, {lw.outbox}, {BUFFER_BYTES}> {out};")
        window = open_window(lw, tensor, coords, value.tile, op)
        row, col = (warp_origin(lw, layout, axis) for axis in (0, 1))
        body.line(f"const int warp_row = {row}, warp_col = {col};")
        with body.each(len(blocks), "m"), body.each(panels, "panel"):
            body.line(f"const int turn = (m * {panels} + panel) % {BUFFERS};")
            body.line(f"const auto buffer = {out}[warp_id * {BUFFERS} + turn];")
            body.line(f"if (lane == 0) tma::store_async_read_wait<{left}>();")
            body.line("__syncwarp();")
            body.line(f"warp::store_panel(buffer, {source}, m, panel);")
            body.line("fence_async_shared();")
            body.line("__syncwarp();")
            row = f"{window.origins[0]} + warp_row + {lw.table(blocks)}[m]"
            col = f"{window.origins[1]} + warp_col + panel * {panel}"
            at = ", ".join([*tile_place(lw, op, coords)[:-2], row, col])
            with body.block("if (lane == 0)"):
                body.line(f"tma::store_async({target}, buffer, element({at}));")
    with body.block("else"):
        lower_store(lw, op)
