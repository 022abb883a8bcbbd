"""Pipelines emitted op by op from a schedule, after it is proven sound.

The steps whose tiles are whole go in rounds through all stages, so that places in LDS are constants of the code.
What is left over goes one step at a time by the same schedule. Loads for steps past the last one bring zeros, or a
tile again that nobody uses, so that counts of what is in flight hold everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeGuard

from warpwave.backends.amd.lower.bursts import Bursts, choose_bursts, memory, refused
from warpwave.backends.amd.lower.chain import Chain
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.direct import DirectLoop
from warpwave.backends.amd.lower.kept import declare, pack, unpack
from warpwave.backends.amd.lower.mma import multiply
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
from warpwave.backends.amd.lower.vector_work import Portion, cost
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
from warpwave.tiles.simt.reduce import running_values

BESIDE = 2  # LDS reads in a row where there is vector work to do
READING = 0.6  # share of the vector work of a memory cluster during which its reads are issued


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
        if bursts is None:
            self.lw.plan.reasons.append(f"{self.op.loc}: default schedule, ping-pong takes too many registers here")
            return emit_default(self, Bursts(self.lw, self.op, self.ring, self.stages), after=True)
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
        return None

    def _say(self, schedule: Schedule, bursts: Bursts) -> None:
        reads = [sum(op.lgkm for op in c.ops if isinstance(op, Read)) for c in schedule.body if c.kind == "memory"]
        waits, barriers = (sum(isinstance(op, kind) for c in schedule.body for op in c.ops) for kind in (Wait, Barrier))
        over = f", operands in {bursts.over[0]} x {bursts.over[1]} parts" if bursts.over != (1, 1) else ""
        self.lw.plan.reasons.append(
            f"{self.op.loc}: {schedule.name} of two groups of {self.lw.waves // 2} waves, {len(reads)} bursts a step"
            f"{over}, {' + '.join(map(str, reads))} reads between them, {waits} waits and {barriers} barriers a step"
        )


def emit_default(loop: AmdLoop, bursts: Bursts, *, after: bool = False) -> None:
    """The loop by the default schedule."""
    default = (DirectLoop if bursts.is_direct() else StagedLoop)(loop.lw, loop.op, loop.ring, loop.stages)
    default.trips = loop.trips
    if isinstance(default, DirectLoop):
        default.recomputes = after
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
    chain: Chain = field(init=False)
    mixing: bool = False

    def __post_init__(self) -> None:
        self.chain = Chain(self.lw, self.loop, self.bursts)

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
            self.chain.declare(self._lower)
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
        """Rounds through all stages that load whole tiles only, or nothing.

        To the last step where all tiles are whole, if steps are long: then a step by itself costs more than a branch
        in each round.
        """
        lw, stages, trips = self.lw, self.loop.stages, self.loop.trips
        movers = tuple(self.movers.values()) if self.loads else ()
        ahead = load_distance(self.schedule) if movers else 0
        to_end = bool(movers) and len(self.bursts.products) > 1
        going = f"{counter} + {stages - 1 + ahead} < {self.whole if movers else trips}"
        if to_end:
            end = lw.fresh("to")
            before = f"{self.whole} - {stages - 1 + ahead}"
            lw.body.line(f"const int {end} = {self.whole} == {trips} ? {trips} - {stages - 1} : {before};")
            going = f"{counter} < {end}"
        for mover in movers:
            mover.start(stages + ahead, f"{self.whole} - 1 - {counter}" if to_end else "")
        with lw.body.block(f"while ({going})"):
            with lw.body.each(stages, "stage"):
                self._step(Place(f"{counter} + stage", "stage", True))
            for mover in movers:
                mover.advance(stages)
            lw.body.line(f"{counter} += {stages};")
            if to_end:
                with lw.body.block(f"if ({counter} + {stages - 1 + ahead} >= {self.whole})"):
                    for mover in movers:
                        mover.stop_at_last()

    def _step(self, place: Place) -> None:
        lw, loop, roles = self.lw, self.loop, self.bursts.roles
        loop.count(place.step)
        self._lower(roles.start if self.computes else ())
        if self.computes:
            self.chain.step()
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
                    declare(lw, operand, name)
                    if bursts.waits_later(operand):
                        steps, reads = len(operand.order.merged), transposed_reads(operand)
                        lw.body.line(f"vec<short, 4> {name}_raw[{steps}][{reads}];")

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
        vector = next((op for op in ops if _is_vector(op)), None)
        reads = [op for op in ops if isinstance(op, Read)]
        matrix = next((op for op in ops if isinstance(op, Compute) and op is not vector), None)
        for op in ops:
            if vector is None or not (reads or matrix):
                self._op(op, place)
            elif reads and op is reads[0]:
                rest = self._read_beside(reads, _cluster(vector), place)
            elif op is vector and matrix:
                self._mix(matrix, vector)
            elif op is vector:
                self._portions(_cluster(vector), rest)
            elif op not in reads and op is not matrix:
                self._op(op, place)

    def _mix(self, matrix: Compute, vector: Compute) -> None:
        """Vector instructions among the matrix instructions of the wave."""
        self._compute(matrix)
        self.mixing = True
        self._compute(vector)
        self.mixing = False
        self._anchor_for_packed(self.bursts.vector[_cluster(vector)])
        each = -(-vector.instructions // matrix.instructions)
        with self.lw.body.each(matrix.instructions):
            self.lw.body.line(f"mix_in<{each}>();")

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
        if not op.tracked:
            self.untaken.append((op.register, operand, name))
        self._read_steps(op, place, 0, len(operand.order.merged))

    def _read_steps(self, op: Read, place: Place, start: int, count: int) -> None:
        operand, name = self.fragments[op.value.tile, op.value.part]
        load = self.bursts.load_of(operand.value)
        shared = load.at(slot(place.stage, op.value.step, self.loop.stages))
        with self.lw.body.each_from(start, count, "s"):
            if not op.tracked:
                issue_transposed(self.lw, operand, shared, f"{name}_raw[s]")
                return
            declare_fragments(self.lw, operand)
            read_fragments(self.lw, operand, shared)
            pack(self.lw, operand, name)

    def _read_beside(self, reads: Sequence[Read], cluster: str, place: Place) -> list[Portion]:
        """Reads with vector work between them, which of that is left.

        As many reads as there are would hold up the wave of the neighbouring SIMD, which shares their port.
        """
        chunks = []
        for read in reads:
            operand, name = self.fragments[read.value.tile, read.value.part]
            if not read.tracked:
                self.untaken.append((read.register, operand, name))
            steps = len(operand.order.merged)
            size = max(1, steps * BESIDE // read.lgkm)
            chunks += [(read, start, min(size, steps - start)) for start in range(0, steps, size)]
        left = list(self.bursts.vector[cluster])
        total, spent = cost(self.lw, [p for p in left if not p.packed])[1], 0
        for number, chunk in enumerate(chunks, 1):
            self._read_steps(chunk[0], place, *chunk[1:])
            self.lw.body.line("finish_first();")
            while left and not left[0].packed and number < len(chunks):
                more = cost(self.lw, left[:1])[1]
                if spent + more / 2 > total * READING * number / len(chunks):
                    break
                spent += more
                self._portion(left.pop(0))
            self.lw.body.line("finish_first();")
        return left

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
                pack(self.lw, operand, name)
        self.untaken = [read for read in self.untaken if read[0] not in op.ties]

    def _compute(self, op: Compute) -> None:
        kind, *numbers = op.name.split()
        if kind == "vector":
            self._portions(_cluster(op), self.bursts.vector[_cluster(op)])
        else:
            self._multiply(*map(int, numbers))

    def _portions(self, cluster: str, portions: Sequence[Portion]) -> None:
        """Vector work of a cluster, and what other clusters need of it."""
        for portion in portions:
            if portion.packed:
                self._begin_packed(cluster, portion)
            self._portion(portion)
        for portion in self.bursts.leaving(cluster):
            self._anchor(portion)
        if cluster == memory(0) and self.bursts.roles.late:
            self.chain.keep()

    def _begin_packed(self, cluster: str, packed: Portion) -> None:
        """Packed work comes after all other work of its cluster, and not before: what it needs is anchored here."""
        for portion in self.bursts.vector[cluster]:
            if portion.of > 1 and not portion.packed and portion.op.result not in self.bursts.packed:
                self._anchor(portion)
        self.lw.body.line("finish_first();")
        self._anchor_operands(packed)

    def _anchor_operands(self, portion: Portion) -> None:
        """What a portion takes of what packed work takes as well is there, and the portion not before that."""
        pairs = portion.items(self.lw) // 2
        for value in portion.op.operands:
            if value in self.bursts.packed:
                with self.lw.body.each_from(portion.number * pairs, pairs):
                    self.lw.body.line(f"pair_made_here({self.lw.name(value)}, i);")

    def _anchor(self, portion: Portion) -> None:
        """The portion is made before what comes later; in pairs of registers where packed work takes it."""
        words, name = portion.items(self.lw) * portion.op.result.tile.dtype.nbytes // 4, "made_here"
        if portion.packed or portion.op.result in self.bursts.packed:
            words, name = words // 2, "pair_made_here"
        with self.lw.body.each_from(portion.number * words, words):
            self.lw.body.line(f"{name}({self.lw.name(portion.op.result)}, i);")

    def _portion(self, portion: Portion) -> None:
        if portion.packed:
            self._packed(portion)
            return
        if portion.of > 1:
            self._anchor_operands(portion)
        with self.lw.unpacked(), self.lw.portion(portion.number, portion.of):
            self.lw.lower_op(portion.op)
        if not self.mixing:
            self._anchor_for_packed([portion])

    def _packed(self, portion: Portion) -> None:
        with self.lw.portion(portion.number, portion.of):
            self.lw.lower_op(portion.op)
            if portion.op.name == "reduce_sum" and not self.lw.is_last_portion:
                running = running_values(self.lw, portion.op)
                with self.lw.body.each(len(self.lw.layout(portion.op.result).items)):
                    self.lw.body.line(f"{running}[i] = only_here({running}[i]);")

    def _anchor_for_packed(self, portions: Sequence[Portion]) -> None:
        for portion in portions:
            if portion.of > 1 and portion.op.result in self.bursts.packed:
                self._anchor(portion)

    # -- products -----------------------------------------------------------------------------------------

    def _multiply(self, number: int, row: int, col: int) -> None:
        """One burst: a part of the result's rows and columns, all depth."""
        lw, bursts = self.lw, self.bursts
        product = bursts.products[number]
        self.chain.begin(number, row, col)
        shared = bursts.shared_operands(product)
        first = bursts.part(product.first, row) if product.first in shared else product.first
        part = replace(product, first=first, second=bursts.part(product.second, col))
        deep, steps = bursts.is_chained(product.second), len(part.second.order.merged)
        place = row * len(first.places), 0 if deep else col * len(part.second.places)
        with lw.body.each(steps, "s"):
            for operand, index in ((part.first, row), (part.second, col)):
                declare_fragments(lw, operand)
                if operand is not product.first or operand in shared:
                    unpack(lw, operand, self.fragments[bursts.tile_names[operand.value], index][1])
                elif self.chain.is_late(product):
                    unpack(lw, operand, self.chain.factor, col * steps if deep else 0)
                else:
                    read_fragments(lw, operand, None)
            multiply(lw, part, *place)
        self.chain.finish(part, *place)


def _is_vector(op: MicroOp) -> TypeGuard[Compute]:
    return isinstance(op, Compute) and op.unit == "vector"


def _cluster(vector: Compute) -> str:
    return vector.name.removeprefix("vector ")
