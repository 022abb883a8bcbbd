"""Warp specialisation: one warp fills rings with the bulk copy engine, the others compute.

A "full" barrier completes a phase when the producer has arrived and all bytes of the stage have landed; an "empty"
one when every computing warp has arrived after its last read. Both count phases by parity, from one pipeline to
the next and from one block of a persistent grid to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.rings import Ring, at_stage, box_place, map_of, producer_ops, users
from warpwave.tiles.ir import Block, Op
from warpwave.tiles.simt.control import assign_all
from warpwave.tiles.simt.memory import open_window
from warpwave.tiles.simt.pipeline import Loop, StagedLoad, feeding, staged_loads


def init_rings(lw: NvidiaLowering) -> None:
    """Barriers, once for the block: the producer alone fills, every computing warp empties."""
    body = lw.body
    with body.block("if (thread == 0)"):
        for ring in dict.fromkeys(lw.rings.values()):
            with body.each(ring.stages, "stage"), body.each(len(ring.groups), "group"):
                at = f"smem_at + {ring.barriers} + (stage * {len(ring.groups)} + group) * 16"
                body.line(f"ptx::mbarrier_init({at}, 1);")
                body.line(f"ptx::mbarrier_init({at} + 8, {lw.waves});")
        body.line("ptx::fence_barrier_init();")
    body.line("workgroup_barrier();")


def declare_places(lw: NvidiaLowering) -> None:
    """Where this thread is in each ring."""
    for ring in dict.fromkeys(lw.rings.values()):
        lw.body.line(f"int {ring.stage} = 0;")
        lw.body.line(f"u32 {ring.phase} = 0;")


def _advance(lw: NvidiaLowering, ring: Ring) -> None:
    lw.body.line(f"if (++{ring.stage} == {ring.stages}) {ring.stage} = 0, {ring.phase} ^= 1;")


# -- the producer ---------------------------------------------------------------------------------------


def produce(lw: NvidiaLowering, block: Block) -> None:
    """The part of a block that leads to loads, for one thread of the producer."""
    for op in producer_ops(block) or []:
        lw.body.loc = op.loc
        if op in lw.rings:
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
    loop = Loop(lw, op, ring.loads(loads), ring.stages)
    trips, counter = lw.fresh("trips"), lw.fresh("iteration")
    body.line(f"const int {trips} = trip_count({', '.join(loop.bounds)});")
    with body.block(f"for (int {counter} = 0; {counter} < {trips}; ++{counter})"):
        loop.count(counter)
        for feeder in feeding(region, loads):
            lw.lower_op(feeder)
        for number, group in enumerate(ring.groups):
            body.line(f"ptx::mbarrier_wait({ring.empty(number)}, {ring.phase} ^ 1);")
            total = sum(_bytes(loop.ring[i]) for i in group)
            body.line(f"ptx::mbarrier_arrive_expect({ring.full(number)}, {total});")
            for i in group:
                _copy(lw, loop.ring[i], ring, ring.full(number))
        _advance(lw, ring)


def _panels(load: StagedLoad) -> int:
    return -(-load.tile.shape[1] * load.tile.dtype.nbytes // load.shared.pitch)


def _bytes(load: StagedLoad) -> int:
    """What the engine counts: whole boxes, also where they lie outside the tensor."""
    return load.tile.shape[0] * load.shared.pitch * _panels(load)


def _copy(lw: NvidiaLowering, load: StagedLoad, ring: Ring, barrier: str) -> None:
    """One instruction for each panel and 256 rows; what lies outside the tensor arrives as zeros."""
    tensor, _, *coords = load.op.operands
    rows, size = load.tile.shape[0], load.tile.dtype.nbytes
    number = map_of(lw, load.op, load.shared)
    window = open_window(lw, tensor, coords, load.tile, load.op)
    per_panel = load.shared.pitch // size
    target = at_stage(load.shared, load.stage_bytes, ring)
    with lw.body.each(_panels(load), "panel"), lw.body.each(-(-rows // 256), "part"):
        place = box_place(lw, load.op, coords, window.origins, "part * 256", f"panel * {per_panel}")
        lw.body.line(f"const int place[] = {{{place}}};")
        at = f"smem_at + {target.offset} + panel * {load.shared.panels} + part * {256 * load.shared.pitch}"
        lw.body.line(f"ptx::tensor_load({at}, &map_{number}, {barrier}, place);")


# -- the computing warps --------------------------------------------------------------------------------


def consume(lw: NvidiaLowering, op: Op) -> None:
    """The loop of the computing warps: each group of tiles is waited for before its first use."""
    _Consumer(lw, op, lw.rings[op]).emit()


@dataclass
class _Consumer:
    lw: NvidiaLowering
    op: Op
    ring: Ring

    def emit(self) -> None:
        """A product that only adds to a carried accumulator stays in flight until the next one is issued."""
        lw, ring = self.lw, self.ring
        (region,) = self.op.regions
        loads = staged_loads(region)
        loop = Loop(lw, self.op, ring.loads(loads), ring.stages)
        loop.declare()
        lw.enter_region()
        counter = lw.fresh("iteration")
        late = self._late_groups(loads)
        if late:
            lw.flying = {lw.name(v) for v in self.op.results}
            for name in sorted(lw.flying):
                lw.body.line(f"pin({name});")
        with lw.body.block(f"for (int {counter} = 0; {counter} < {loop.trips}; ++{counter})"):
            loop.count(counter)
            for load in loop.ring:
                lw.shared[load.op.result] = at_stage(load.shared, load.stage_bytes, ring)
            self._ops(region, loads, late, counter)
            flying, lw.pending = (lw.pending, {}) if late else ({}, lw.pending)
            assign_all(lw, loop.names, self.op.results, region.terminator.operands)
            lw.pending |= flying
            if not late:
                lw.enter_region()
            _advance(lw, ring)
        if late:
            lw.flying = set()
            lw.enter_region()
            with lw.body.block(f"if ({loop.trips} > 0)"):
                for group in late:
                    self._release(group, f"({ring.stage} + {ring.stages - 1}) % {ring.stages}")

    def _late_groups(self, loads: list[Op]) -> list[int]:
        """Groups that only a product reads whose result nothing reads before the next iteration's product."""
        (region,) = self.op.regions
        products = [op for op in region.ops if op.name == "mma"]
        if len(products) != 1 or self.lw.plan.products[products[0]].engine != "wgmma" or self.ring.stages < 2:
            return []
        product = products[0]
        carried = product.operands[0] in region.args and product.result in region.terminator.operands
        alone = self.lw.uses[product.result] == 1 and self.lw.uses[product.operands[0]] == 1
        place = region.ops.index(product)
        if not (carried and alone) or region.args.index(product.operands[0]) - 1 != region.terminator.operands.index(
            product.result
        ):
            return []
        return [n for n, group in enumerate(self.ring.groups) if all(users(region, loads[i]) == [place] for i in group)]

    def _ops(self, region: Block, loads: list[Op], late: list[int], counter: str) -> None:
        lw, ring = self.lw, self.ring
        spans = [[users(region, loads[i]) for i in group] for group in ring.groups]
        first = [min(min(u) for u in group) for group in spans]
        last = [max(max(u) for u in group) for group in spans]
        for place, op in enumerate(region.ops[:-1]):
            for group in (g for g, start in enumerate(first) if start == place):
                lw.body.line(f"ptx::mbarrier_wait({ring.full(group)}, {ring.phase});")
            if op not in loads:
                lw.lower_op(op)
            for group in (g for g, end in enumerate(last) if end == place):
                if group in late:
                    lw.body.line("ptx::wgmma_wait<1>();")
                    with lw.body.block(f"if ({counter} > 0)"):
                        self._release(group, f"({ring.stage} + {ring.stages - 1}) % {ring.stages}")
                else:
                    lw.drain()
                    self._release(group)

    def _release(self, group: int, stage: str = "") -> None:
        self.lw.body.line("__syncwarp();")
        self.lw.body.line(f"if (lane == 0) ptx::mbarrier_arrive({self.ring.empty(group, stage)});")
