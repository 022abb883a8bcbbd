"""Pipelines emitted op by op from a schedule, after it is proven sound.

The steps whose tiles are whole go in rounds through all stages, so that places in LDS are constants of the code.
What is left over goes one step at a time by the same schedule. Loads for steps past the last one bring zeros, so
that counts of what is in flight hold everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpwave.backends.amd.lower.bursts import Bursts, choose_bursts, refused
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.direct import DirectLoop
from warpwave.backends.amd.lower.mma import begin, multiply
from warpwave.backends.amd.lower.movers import DirectMover, Mover, StagedMover, slot
from warpwave.backends.amd.lower.moving import count_whole
from warpwave.backends.amd.lower.operands import Operand, declare_fragments, read_fragments
from warpwave.backends.amd.lower.staged import StagedLoop
from warpwave.backends.amd.lower.stages import AmdLoop
from warpwave.backends.amd.schedule.check import check_schedule
from warpwave.backends.amd.schedule.form import (
    Barrier,
    Cluster,
    Compute,
    Fence,
    LoadDirect,
    LoadRegisters,
    Priority,
    Put,
    Read,
    Schedule,
    Wait,
)
from warpwave.backends.amd.schedule.form import Op as MicroOp
from warpwave.backends.amd.schedule.pingpong import LEAD, load_distance, ping_pong
from warpwave.tiles.errors import InternalError
from warpwave.tiles.ir import Op
from warpwave.tiles.simt.control import assign_all
from warpwave.tiles.simt.pipeline import StagedLoad


@dataclass(frozen=True)
class Place:
    """Where in the loop ops are emitted: a step and its stage as C expressions, and whether tiles are whole."""

    step: str
    stage: str
    whole: bool


class ScheduledLoop(AmdLoop):
    """A pipeline by a generated schedule."""

    lw: AmdLowering

    def emit(self) -> None:
        """The loop; where a tensor's rows cannot be moved 16 bytes at a time, by the default schedule."""
        bursts = choose_bursts(self.lw, self.op, self.ring, self.stages)
        schedule = ping_pong(bursts.pipelined())
        check_schedule(schedule, self.lw.target)
        self.lw.plan.schedules.append(schedule)
        self._say(schedule, bursts)
        emission = _Emission(self, bursts, schedule)
        emission.open()
        with self.lw.body.block(f"if constexpr ({emission.possible})"):
            emission.emit()
        with self.lw.body.block("else"):
            default = (DirectLoop if bursts.is_direct() else StagedLoop)(self.lw, self.op, self.ring, self.stages)
            default.trips = self.trips
            default.emit()

    def _say(self, schedule: Schedule, bursts: Bursts) -> None:
        reads = [sum(op.lgkm for op in c.ops if isinstance(op, Read)) for c in schedule.body if c.kind == "memory"]
        waits, barriers = (sum(isinstance(op, kind) for c in schedule.body for op in c.ops) for kind in (Wait, Barrier))
        over = f", operands in {bursts.over[0]} x {bursts.over[1]} parts" if bursts.over != (1, 1) else ""
        self.lw.plan.reasons.append(
            f"{self.op.loc}: {schedule.name} of two groups of {self.lw.waves // 2} waves, {len(reads)} bursts a step"
            f"{over}, {' + '.join(map(str, reads))} reads between them, {waits} waits and {barriers} barriers a step"
        )


@dataclass
class _Emission:
    loop: ScheduledLoop
    bursts: Bursts
    schedule: Schedule

    @property
    def lw(self) -> AmdLowering:
        return self.loop.lw

    def open(self) -> None:
        """Declare what moves the tiles, and how many of the first steps find all of them whole."""
        loop, kind = self.loop, DirectMover if self.bursts.is_direct() else StagedMover
        loop.coordinates_at("0")
        sources = zip(loop.ring, self.schedule.shared, strict=True)
        self.movers: dict[str, Mover] = {
            tile.name: kind(loop, load, tile.parts, self._chunk(load)) for load, tile in sources
        }
        for mover in self.movers.values():
            mover.open()
        ahead = load_distance(self.schedule) + loop.stages
        self.whole = count_whole(self.lw, [m.moving for m in self.movers.values()], loop.trips, ahead)
        self.possible = " && ".join(m.possible for m in self.movers.values())

    def _chunk(self, load: StagedLoad) -> int:
        operands = [o for p in self.bursts.products for o in self.bursts.shared_operands(p)]
        return next(self.bursts.runs(o) for o in operands if o.value is load.op.result)

    def emit(self) -> None:
        """Prologue, rounds, single steps, end."""
        lw, loop = self.lw, self.loop
        lw.enter_region()
        self._declare_fragments()
        for mover in self.movers.values():
            mover.define_any(self.whole)
        with lw.without_barriers(lambda: refused(loop.op, "its body exchanges data between waves", "drop schedule=")):
            self._clusters(self.schedule.prologue, Place("0", "0", False))
            counter = lw.fresh("iteration")
            lw.body.line(f"int {counter} = 0;")
            self._rounds(counter)
            with lw.body.block(f"for (; {counter} < {loop.trips}; ++{counter})"):
                lw.body.line(f"const int stage = {counter} % {loop.stages};")
                self._step(Place(counter, "stage", False))
            self._clusters(self.schedule.epilogues[0], Place(counter, "0", False))
        lw.unfinished_reads = True

    def _rounds(self, counter: str) -> None:
        """Rounds through all stages that load whole tiles only."""
        lw, stages = self.lw, self.loop.stages
        last = stages - 1 + load_distance(self.schedule)
        for mover in self.movers.values():
            mover.start()
        with lw.body.block(f"while ({counter} + {last} < {self.whole})"):
            with lw.body.each(stages, "stage"):
                self._step(Place(f"{counter} + stage", "stage", True))
            for mover in self.movers.values():
                mover.advance(stages)
            lw.body.line(f"{counter} += {stages};")

    def _step(self, place: Place) -> None:
        lw, loop, roles = self.lw, self.loop, self.bursts.roles
        loop.count(place.step)
        self._lower(roles.start)
        self._clusters(self.schedule.body, place)
        assign_all(lw, loop.names, loop.op.results, loop.body.terminator.operands)

    def _lower(self, ops: Sequence[Op]) -> None:
        for op in ops:
            self.lw.lower_op(op)

    # -- fragments ------------------------------------------------------------------------------------

    def _declare_fragments(self) -> None:
        """Each part of a tile that products use, in whole registers: of bytes the compiler would keep each apart."""
        bursts, lw = self.bursts, self.lw
        self.fragments: dict[tuple[str, int], tuple[Operand, str]] = {}
        for product in bursts.products:
            for whole in bursts.shared_operands(product):
                for number in range(bursts.parts(whole)):
                    operand, name = bursts.part(whole, number), lw.fresh(whole.which)
                    self.fragments[bursts.tile_names[whole.value], number] = operand, name
                    steps, blocks = product.steps, len(operand.places)
                    lw.body.line(f"vec<u32, {_words(operand)}> {name}[{steps}][{blocks}];")

    # -- ops ------------------------------------------------------------------------------------------

    def _clusters(self, clusters: Sequence[Cluster], place: Place) -> None:
        for cluster in clusters:
            self.lw.body.line(f"// {cluster.name}")
            if cluster.only:
                lead = f"wave < {self.schedule.groups[0].waves}"
                with self.lw.body.block(f"if ({lead if cluster.only == (LEAD,) else f'!({lead})'})"):
                    self._ops(cluster.ops, place)
            else:
                self._ops(cluster.ops, place)

    def _ops(self, ops: Sequence[MicroOp], place: Place) -> None:
        for op in ops:
            self._op(op, place)

    def _op(self, op: MicroOp, place: Place) -> None:
        line = self.lw.body.line
        if isinstance(op, LoadDirect | LoadRegisters):
            self.movers[op.value.tile].load(op.value, place)
        elif isinstance(op, Put):
            self.movers[op.value.tile].put(op.value, place)
        elif isinstance(op, Read):
            self._read(op, place)
        elif isinstance(op, Compute):
            self._compute(op)
        elif isinstance(op, Wait):
            vm = self.lw.target.max_vmcnt if op.vm is None else op.vm
            line(f"wait_for<{vm}, {self.lw.target.max_lgkmcnt if op.lgkm is None else op.lgkm}>();")
        elif isinstance(op, Barrier):
            line("cluster_barrier();")
        elif isinstance(op, Priority):
            line(f"__builtin_amdgcn_s_setprio({op.level});")
        elif isinstance(op, Fence):
            line("finish_first();")
        else:
            raise InternalError(f"{type(op).__name__} is not emitted as source", loc=self.loop.op.loc)

    def _read(self, op: Read, place: Place) -> None:
        operand, name = self.fragments[op.value.tile, op.value.part]
        load = self.bursts.load_of(operand.value)
        shared = load.at(slot(place.stage, op.value.step, self.loop.stages))
        with self.lw.body.each(len(operand.order.merged), "s"):
            declare_fragments(self.lw, operand)
            read_fragments(self.lw, operand, shared)
            packed = f"bits<vec<u32, {_words(operand)}>>({operand.which}[i])"
            self.lw.body.line(f"EACH(i, {len(operand.places)}) {name}[s][i] = {packed};")

    def _compute(self, op: Compute) -> None:
        kind, *numbers = op.name.split()
        if kind == "before":
            self._lower(self.bursts.roles.before[int(numbers[0])])
        elif kind == "after":
            self._lower(self.bursts.roles.after)
        else:
            self._multiply(*map(int, numbers))

    def _multiply(self, number: int, row: int, col: int) -> None:
        """One burst: a part of the result's rows and columns, all depth."""
        lw, bursts = self.lw, self.bursts
        product = bursts.products[number]
        if row == col == 0:
            begin(lw, product)
        shared = bursts.shared_operands(product)
        first = bursts.part(product.first, row) if product.first in shared else product.first
        part = replace(product, first=first, second=bursts.part(product.second, col))
        with lw.body.each(product.steps, "s"):
            for operand, index in ((part.first, row), (part.second, col)):
                declare_fragments(lw, operand)
                if operand is product.first and operand not in shared:
                    read_fragments(lw, operand, None)
                else:
                    self._unpack(operand, index)
            multiply(lw, part, row * len(first.places), col * len(part.second.places))

    def _unpack(self, operand: Operand, index: int) -> None:
        _, name = self.fragments[self.bursts.tile_names[operand.value], index]
        kind = f"vec<{operand.kind}, {operand.per_lane}>"
        self.lw.body.line(f"EACH(i, {len(operand.places)}) {operand.which}[i] = bits<{kind}>({name}[s][i]);")


def _words(operand: Operand) -> int:
    """Registers of a fragment."""
    return operand.per_lane * operand.dtype.nbytes // 4
