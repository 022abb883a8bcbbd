"""Pipelines emitted op by op from a schedule, after it is proven sound.

The steps whose tiles are whole go in rounds through all stages, so that places in LDS are constants of the code.
What is left over goes one step at a time by the same schedule. Loads for steps past the last one bring zeros, so
that counts of what is in flight hold everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from warpwave.backends.amd.lower.bursts import Bursts, choose_bursts, refused
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.direct import DirectLoop
from warpwave.backends.amd.lower.mma import begin, multiply
from warpwave.backends.amd.lower.movers import DirectMover, Mover, StagedMover, slot
from warpwave.backends.amd.lower.moving import count_whole
from warpwave.backends.amd.lower.operands import (
    Operand,
    declare_fragments,
    issue_transposed,
    read_fragments,
    take_transposed,
    transposed_reads,
)
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
from warpwave.tiles.simt.convert import convert
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
        emission = Emission(self, bursts, schedule)
        emission.open()
        with self.lw.body.block(f"if constexpr ({emission.possible})"):
            emission.emit()
        with self.lw.body.block("else"):
            emit_default(self, bursts)

    def _say(self, schedule: Schedule, bursts: Bursts) -> None:
        reads = [sum(op.lgkm for op in c.ops if isinstance(op, Read)) for c in schedule.body if c.kind == "memory"]
        waits, barriers = (sum(isinstance(op, kind) for c in schedule.body for op in c.ops) for kind in (Wait, Barrier))
        over = f", operands in {bursts.over[0]} x {bursts.over[1]} parts" if bursts.over != (1, 1) else ""
        self.lw.plan.reasons.append(
            f"{self.op.loc}: {schedule.name} of two groups of {self.lw.waves // 2} waves, {len(reads)} bursts a step"
            f"{over}, {' + '.join(map(str, reads))} reads between them, {waits} waits and {barriers} barriers a step"
        )


def emit_default(loop: AmdLoop, bursts: Bursts) -> None:
    """The loop by the default schedule."""
    default = (DirectLoop if bursts.is_direct() else StagedLoop)(loop.lw, loop.op, loop.ring, loop.stages)
    default.trips = loop.trips
    default.emit()


@dataclass
class Emission:
    """The text of a schedule; `group` is the only one that comes here, where groups do not share the code."""

    loop: AmdLoop
    bursts: Bursts
    schedule: Schedule
    group: str = ""
    movers: dict[str, Mover] = field(default_factory=dict)
    whole: str = ""
    possible: str = ""
    untaken: list[tuple[str, Operand, str]] = field(default_factory=list)

    @property
    def lw(self) -> AmdLowering:
        """Where the text goes."""
        lw = self.loop.lw
        assert isinstance(lw, AmdLowering)
        return lw

    @cached_property
    def kinds(self) -> set[type]:
        """Of the ops that come here."""
        clusters = (c for c in self.schedule.body if self._comes_here(c))
        return {type(op) for cluster in clusters for op in cluster.ops}

    @property
    def loads(self) -> bool:
        """Whether the waves that come here load tiles."""
        return not self.kinds.isdisjoint((LoadDirect, LoadRegisters))

    @property
    def computes(self) -> bool:
        """Whether they have the results."""
        return Compute in self.kinds

    def _comes_here(self, cluster: Cluster) -> bool:
        return not self.group or not cluster.only or self.group in cluster.only

    def open(self) -> None:
        """Declare what moves the tiles, and how many of the first steps find all of them whole."""
        loop, kind = self.loop, DirectMover if self.bursts.is_direct() else StagedMover
        loop.coordinates_at("0")
        sources = zip(loop.ring, self.schedule.shared, strict=True)
        self.movers = {
            tile.name: kind(loop, load, tile.parts, self._chunk(load), self.bursts.loaders or self.lw.waves)
            for load, tile in sources
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
        if self.computes:
            self._declare_fragments()
            if self.bursts.roles.late:
                self._declare_late()
        for mover in self.movers.values() if self.loads else ():
            mover.declare()
            mover.define_any(self.whole)
        why = "its body exchanges data between waves"
        with lw.without_barriers(lambda: refused(lw, loop.op, why, "drop schedule=")):
            self._clusters(self.schedule.prologue, Place("0", "0", False))
            counter = lw.fresh("iteration")
            lw.body.line(f"int {counter} = 0;")
            self._rounds(counter)
            with lw.body.block(f"for (; {counter} < {loop.trips}; ++{counter})"):
                lw.body.line(f"const int stage = {counter} % {loop.stages};")
                self._step(Place(counter, "stage", False))
            self._clusters(self.schedule.epilogues[0], Place(counter, f"{counter} % {loop.stages}", False))
        lw.unfinished_reads = True

    def _rounds(self, counter: str) -> None:
        """Rounds through all stages that load whole tiles only, or nothing."""
        lw, stages = self.lw, self.loop.stages
        movers = tuple(self.movers.values()) if self.loads else ()
        last = stages - 1 + (load_distance(self.schedule) if movers else 0)
        for mover in movers:
            mover.start()
        with lw.body.block(f"while ({counter} + {last} < {self.whole if movers else self.loop.trips})"):
            with lw.body.each(stages, "stage"):
                self._step(Place(f"{counter} + stage", "stage", True))
            for mover in movers:
                mover.advance(stages)
            lw.body.line(f"{counter} += {stages};")

    def _step(self, place: Place) -> None:
        lw, loop, roles = self.lw, self.loop, self.bursts.roles
        loop.count(place.step)
        self._lower(roles.start if self.computes else ())
        self._clusters(self.schedule.body, place)
        if self.computes:
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
                    if bursts.waits_later(operand):
                        lw.body.line(f"vec<short, 4> {name}_raw[{steps}][{transposed_reads(operand)}];")

    # -- ops ------------------------------------------------------------------------------------------

    def _clusters(self, clusters: Sequence[Cluster], place: Place) -> None:
        for cluster in filter(self._comes_here, clusters):
            self.lw.body.line(f"// {cluster.name}")
            if cluster.only and not self.group:
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
            self._wait(op)
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
            if not op.tracked:
                issue_transposed(self.lw, operand, shared, f"{name}_raw[s]")
                self.untaken.append((op.register, operand, name))
                return
            declare_fragments(self.lw, operand)
            read_fragments(self.lw, operand, shared)
            self._pack(operand, name)

    def _wait(self, op: Wait) -> None:
        """The wait, and the registers that pass through it."""
        target = self.lw.target
        vm, lgkm = (most if n is None else n for n, most in ((op.vm, target.max_vmcnt), (op.lgkm, target.max_lgkmcnt)))
        self.lw.body.line(f"wait_for<{vm}, {lgkm}>();")
        for _, operand, name in (read for read in self.untaken if read[0] in op.ties):
            with self.lw.body.each(len(operand.order.merged), "s"):
                self.lw.body.line(f"EACH(i, {transposed_reads(operand)}) landed({name}_raw[s][i]);")
                declare_fragments(self.lw, operand)
                take_transposed(self.lw, operand, f"{name}_raw[s]")
                self._pack(operand, name)
        self.untaken = [read for read in self.untaken if read[0] not in op.ties]

    def _pack(self, operand: Operand, name: str) -> None:
        # not `bits`: clang gives its copies for vectors of these and of the builtins' types one name
        packed = f"__builtin_bit_cast(vec<u32, {_words(operand)}>, {operand.which}[i])"
        self.lw.body.line(f"EACH(i, {len(operand.places)}) {name}[s][i] = {packed};")

    def _compute(self, op: Compute) -> None:
        kind, *numbers = op.name.split()
        if kind == "before":
            self._lower(self.bursts.roles.before[int(numbers[0])])
        elif kind == "after":
            self._lower(self.bursts.roles.after)
            if self.bursts.roles.late:
                self._keep_late()
        else:
            self._multiply(*map(int, numbers))

    # -- a product that is one step late ----------------------------------------------------------------

    def _declare_late(self) -> None:
        """What the late product of the next step goes on with: at first nothing is added to the loop's first value."""
        lw, product = self.lw, self.bursts.products[-1]
        yielded = self.loop.body.terminator.operands.index(product.op.result)
        lw.names[product.op.result] = self.loop.names[yielded]
        self.kept, self.factor = lw.fresh("kept"), lw.fresh("factor")
        lw.body.line(f"auto {self.kept} = {self.loop.names[yielded]};")
        words, blocks = _words(product.first), len(product.first.places)
        lw.body.line(f"vec<u32, {words}> {self.factor}[{product.steps}][{blocks}];")
        with lw.body.each(product.steps, "s"):
            lw.body.line(f"EACH(i, {blocks}) {self.factor}[s][i] = {{}};")

    def _keep_late(self) -> None:
        lw, product = self.lw, self.bursts.products[-1]
        lw.body.line(f"{self.kept} = {convert(lw, product.op.operands[0], lw.layout(product.op.result))};")
        with lw.body.each(product.steps, "s"):
            declare_fragments(lw, product.first)
            read_fragments(lw, product.first, None)
            self._pack(product.first, self.factor)
            lw.body.line(f"EACH(i, {len(product.first.places)}) landed({self.factor}[s][i]);")

    # -- products -----------------------------------------------------------------------------------------

    def _multiply(self, number: int, row: int, col: int) -> None:
        """One burst: a part of the result's rows and columns, all depth."""
        lw, bursts = self.lw, self.bursts
        product = bursts.products[number]
        late = self.bursts.roles.late and product is bursts.products[-1]
        if row == col == 0 and late:
            lw.body.line(f"{lw.name(product.op.result)} = {self.kept};")
        elif row == col == 0:
            begin(lw, product)
        shared = bursts.shared_operands(product)
        first = bursts.part(product.first, row) if product.first in shared else product.first
        part = replace(product, first=first, second=bursts.part(product.second, col))
        with lw.body.each(product.steps, "s"):
            for operand, index in ((part.first, row), (part.second, col)):
                declare_fragments(lw, operand)
                if operand is not product.first or operand in shared:
                    self._unpack(operand, self.fragments[bursts.tile_names[operand.value], index][1])
                elif late:
                    self._unpack(operand, self.factor)
                else:
                    read_fragments(lw, operand, None)
            multiply(lw, part, row * len(first.places), col * len(part.second.places))

    def _unpack(self, operand: Operand, name: str) -> None:
        kind = f"vec<{operand.kind}, {operand.per_lane}>"
        self.lw.body.line(
            f"EACH(i, {len(operand.places)}) {operand.which}[i] = __builtin_bit_cast({kind}, {name}[s][i]);"
        )


def _words(operand: Operand) -> int:
    """Registers of a fragment."""
    return operand.per_lane * operand.dtype.nbytes // 4
