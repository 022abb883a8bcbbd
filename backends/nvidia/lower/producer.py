"""Warp specialisation: one warp fills rings with the bulk copy engine, the others compute (consumer.py).

A "full" barrier completes a phase when the producer has arrived and all bytes of the stage have landed; an "empty"
one when every computing warp has arrived after its last read. Both count phases by parity, from one pipeline to
the next and from one block of a persistent grid to the next.
"""

from __future__ import annotations

from warpwave.backends.nvidia.lower.clusters import is_common
from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.place import NamedTile
from warpwave.backends.nvidia.lower.rings import (
    Ring,
    RingLoop,
    at_stage,
    box_place,
    box_rows,
    map_name,
    map_of,
    producer_slice,
    tile_place,
)
from warpwave.tiles.ir import Block, Op
from warpwave.tiles.simt.context import SharedTile
from warpwave.tiles.simt.memory import open_window
from warpwave.tiles.simt.pipeline import StagedLoad, feeding, staged_loads


def init_rings(lw: NvidiaLowering) -> None:
    """Barriers, once for the block: the producer alone fills, every computing warp empties."""
    body = lw.body
    with body.block("if (thread == 0)"):
        for ring in dict.fromkeys(lw.rings.values()):
            with body.each(ring.stages, "s"):
                for group in range(len(ring.groups)):
                    body.line(f"init_semaphore({ring.full(group, 's')}, 1);")
                    body.line(f"init_semaphore({ring.empty(group, 's')}, {lw.waves * lw.plan.cluster});")
        body.line("ptx::fence_barrier_init();")
    if lw.plan.cluster > 1:
        meet_cluster(lw)
    else:
        body.line("workgroup_barrier();")
    body.line("if constexpr (AFTER_COPIES) ptx::wait_for_grid_before();")


def meet_cluster(lw: NvidiaLowering) -> None:
    """All threads of all blocks of the cluster: before the first and after the last access to another's memory."""
    for text in ("__syncwarp();", "ptx::cluster_arrive();", "ptx::cluster_wait();"):
        lw.body.line(text)


def declare_places(lw: NvidiaLowering) -> None:
    """Where this thread is in each ring."""
    for ring in dict.fromkeys(lw.rings.values()):
        for group in range(len(ring.groups)):
            lw.body.line(f"int {ring.stage(group)} = 0;")
            lw.body.line(f"u32 {ring.phase(group)} = 0;")


def advance(lw: NvidiaLowering, ring: Ring, group: int) -> None:
    """To the next stage; the parity changes with each round."""
    stage = ring.stage(group)
    lw.body.line(f"if (++{stage} == {ring.stages}) {stage} = 0, {ring.phase(group)} ^= 1;")


# -- the producer ---------------------------------------------------------------------------------------


def produce(lw: NvidiaLowering, block: Block) -> None:
    """The part of a block that leads to loads, for one thread of the producer."""
    found = producer_slice(block, [op for op in block.ops if op.name == "load" and op in lw.rings])
    assert found is not None, "can_produce says so before a producer is planned"
    for op in found.ops:
        lw.body.loc = op.loc
        if op.name == "load" and op in lw.rings:
            _fill_stage(lw, lw.rings[op], [op])
        elif op in lw.rings:
            _fill(lw, op, lw.rings[op])
        elif op.name == "if":
            for head, region in zip((f"if ({lw.name(op.operands[0])})", "else"), op.regions, strict=True):
                with lw.body.block(head):
                    produce(lw, region)
        elif op.name == "for":
            _repeat(lw, op)
        else:
            lw.lower_op(op)


def _repeat(lw: NvidiaLowering, op: Op) -> None:
    start, stop, step = (lw.name(v) for v in op.operands[:3])
    counter = op.regions[0].args[0]
    name = lw.define(counter, counter.name)
    bounds = f"{step} > 0 ? {name}_ < {stop} : {name}_ > {stop}"
    with lw.body.block(f"for (long {name}_ = {start}; {bounds}; {name}_ += {step})"):
        lw.body.line(f"const int {name} = (int){name}_;")
        produce(lw, op.regions[0])


def _fill(lw: NvidiaLowering, op: Op, ring: Ring) -> None:
    """Wait for each stage to be empty, then start its copies."""
    body = lw.body
    (region,) = op.regions
    loads = staged_loads(region)
    loop = RingLoop(lw, op, ring.loads(loads), ring.stages)
    trips, counter = lw.fresh("trips"), lw.fresh("iteration")
    body.line(f"const int {trips} = trip_count({', '.join(loop.bounds)});")
    with body.block(f"for (int {counter} = 0; {counter} < {trips}; ++{counter})"):
        loop.count(counter)
        for feeder in feeding(region, loads):
            lw.lower_op(feeder)
        _fill_stage(lw, ring, loads)


def _fill_stage(lw: NvidiaLowering, ring: Ring, ops: list[Op]) -> None:
    """Start the copies of one iteration, group by group."""
    loads = ring.loads(ops)
    for number, group in enumerate(ring.groups):
        lw.body.line(f"wait({ring.empty(number)}, {ring.phase(number)} ^ 1);")
        total = sum(_bytes(loads[i]) for i in group)
        lw.body.line(f"tma::expect_bytes({ring.full(number)}, {total});")
        for i in group:
            lw.comment(loads[i].op)
            tile = at_stage(ring, i)
            if lw.plan.cluster > 1 or not tile.name:
                with lw.body.block(""):
                    _copy(lw, loads[i], tile, f"(u32){ring.full(number)}")
            else:
                _load_tile(lw, loads[i], tile, ring.full(number))
        advance(lw, ring, number)


def _load_tile(lw: NvidiaLowering, load: StagedLoad, target: NamedTile, semaphore: str) -> None:
    """What lies outside the tensor arrives as zeros."""
    _, _, *coords = load.op.operands
    wanted = map_name(lw, map_of(lw, load.op, load.shared, load.tile.shape[0]))
    at = ", ".join(tile_place(lw, load.op, coords))
    unit = "coord" if load.op.attrs["unit"] == "tile" else "element"
    lw.body.line(f"tma::load_async({target.name}, {wanted}, {unit}({at}), {semaphore});")


def _panels(load: StagedLoad) -> int:
    return -(-load.tile.shape[1] * load.tile.dtype.nbytes // load.shared.pitch)


def _bytes(load: StagedLoad) -> int:
    """What the engine counts: whole boxes, also where they lie outside the tensor."""
    return load.tile.shape[0] * load.shared.pitch * _panels(load)


def _copy(lw: NvidiaLowering, load: StagedLoad, target: SharedTile, barrier: str) -> None:
    """One instruction for each panel and box of rows; what lies outside the tensor arrives as zeros."""
    tensor, _, *coords = load.op.operands
    rows, size = load.tile.shape[0], load.tile.dtype.nbytes
    common = lw.plan.cluster > 1 and is_common(lw, load.op)
    rows //= lw.plan.cluster if common else 1
    first = f"(int)ptx::cluster_rank() * {rows} + " if common else ""
    number = map_of(lw, load.op, load.shared, rows)
    window = open_window(lw, tensor, coords, load.tile, load.op)
    per_panel, box = load.shared.pitch // size, box_rows(lw)
    with lw.body.each(_panels(load), "panel"), lw.body.each(-(-rows // box), "part"):
        place = box_place(lw, load.op, coords, window.origins, f"{first}part * {box}", f"panel * {per_panel}")
        lw.body.line(f"const int place[] = {{{place}}};")
        at = f"smem_at + {target.offset} + panel * {load.shared.panels}"
        at += f" + ({first}part * {box}) * {load.shared.pitch}"
        if common:
            everywhere = (1 << lw.plan.cluster) - 1
            lw.body.line(f"ptx::tensor_load_multicast({at}, &{map_name(lw, number)}, {barrier}, place, {everywhere});")
        else:
            lw.body.line(f"ptx::tensor_load({at}, &{map_name(lw, number)}, {barrier}, place);")
