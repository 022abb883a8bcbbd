"""Stores of accumulators through shared memory by the bulk copy engine, while the warps go on.

Each warp has two buffers of 16 rows by one swizzled panel; it fills one with stmatrix while the engine reads the
other, and needs no other warp. What lies outside the tensor is not written.
"""

from __future__ import annotations

from warpwave.backends.nvidia.layout import LANES, ROWS
from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.operands import warp_origin
from warpwave.backends.nvidia.lower.place import SWIZZLES
from warpwave.backends.nvidia.lower.rings import begins_aligned, box_place, has_map, map_number, pipelines
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
    number = map_number(lw, TensorMap(name, tuple(op.attrs["axes"]), ROWS, panel, 2 * panel))
    left = 1 if len(blocks) * panels % BUFFERS == 0 else 0  # copies that may still read when a buffer is used again
    if lw.outbox_in_rings:
        lw.barrier()  # all warps are done with what they read there
        lw.outbox_in_rings = False
    with body.block(f"if constexpr (tma_{name})"):
        window = open_window(lw, tensor, coords, value.tile, op)
        row, col = (warp_origin(lw, layout, axis) for axis in (0, 1))
        body.line(f"const int warp_row = {row}, warp_col = {col};")
        with body.each(len(blocks), "m"), body.each(panels, "panel"):
            body.line(f"const int turn = (m * {panels} + panel) % {BUFFERS};")
            body.line(f"const u32 buffer = smem_at + {lw.outbox} + (warp_id * {BUFFERS} + turn) * {BUFFER_BYTES};")
            body.line(f"if (lane == 0) ptx::bulk_wait_read<{left}>();")
            body.line("__syncwarp();")
            _fill(lw, source, cols, panel)
            body.line("ptx::fence_async_shared();")
            body.line("__syncwarp();")
            with body.block("if (lane == 0)"):
                row = f"warp_row + {lw.table(blocks)}[m]"
                place = box_place(lw, op, coords, window.origins, row, f"warp_col + panel * {panel}")
                body.line(f"const int place[] = {{{place}}};")
                body.line(f"ptx::tensor_store(&map_{number}, buffer, place);")
                body.line("ptx::bulk_commit();")
    with body.block("else"):
        lower_store(lw, op)


def _fill(lw: NvidiaLowering, source: str, cols: int, panel: int) -> None:
    """Sixteen columns at a time, 16-byte units where the swizzle of the panel puts them."""
    masks = SWIZZLES[2 * panel]
    row = "((lane & 7) + (lane >> 3 & 1) * 8)"
    swizzle = " ^ ".join(f"(lane >> {bit} & 1) * {mask}" for bit, mask in enumerate(masks) if mask)
    with lw.body.each(panel // 16, "q"):
        lw.body.line(f"const int first = m * {cols // 2} + panel * {panel // 2} + q * 8;")
        lw.body.line("u32 x[4];")
        halves = ", ".join(f"bits<u16>({source}.get(first + i * 2{plus}))" for plus in ("", " + 1"))
        lw.body.line(f"EACH(i, 4) x[i] = bits<u32>(vec<u16, 2>{{{halves}}});")
        lw.body.line(f"const u32 at = {row} * {2 * panel} + q * 32 + (lane >> 4) * 16;")
        lw.body.line(f"ptx::stmatrix(buffer + (at ^ ({swizzle})), x);")
