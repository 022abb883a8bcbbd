"""A pipelined loop as bursts of matrix work: which op belongs where, and in how many parts tiles are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from warpwave.backends.amd.arch import DIRECT, WAVE
from warpwave.backends.amd.gate import registers_of_a_lane
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.mma import Product, product_of
from warpwave.backends.amd.lower.operands import Operand, is_transposing
from warpwave.backends.amd.lower.place import operand_reads
from warpwave.backends.amd.lower.roles import Roles, made_late, needs_no_step, roles_of
from warpwave.backends.amd.lower.vector_slots import Interval, StepSlots
from warpwave.backends.amd.lower.vector_work import RENAMING, Portion, cost
from warpwave.backends.amd.rates import slowest_load
from warpwave.backends.amd.schedule.form import Compute, Held, RegisterTile
from warpwave.backends.amd.schedule.pingpong import flight
from warpwave.backends.amd.schedule.pipelined import Burst, Fragment, PipelinedLoop, Source
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.ir import OPS, Op, Value
from warpwave.tiles.simt.pipeline import StagedLoad, staged_loads
from warpwave.tiles.simt.products import ancestors

ELSEWHERE = 56  # registers a lane for addresses, offsets and what else there is
SPLITS = ((1, 1), (1, 2), (2, 1), (2, 2), (2, 4), (4, 2), (4, 4))


def memory(burst: int) -> str:
    """What the memory cluster before a burst is called."""
    return f"memory {burst}"


def compute(burst: int) -> str:
    """What the cluster of a burst is called."""
    return f"compute {burst}"


@dataclass
class Bursts:
    """A loop that is being scheduled: its roles, products, and how tiles are split over rows and columns.

    `loaders` are the waves that load, all of them if 0.
    """

    lw: AmdLowering
    op: Op
    ring: Sequence[StagedLoad]
    stages: int
    over: tuple[int, int] = (1, 1)
    loaders: int = 0
    roles: Roles = field(init=False)
    products: tuple[Product, ...] = field(init=False)
    early: int = field(init=False, default=0)  # parts of the first product that are multiplied a step ahead

    def __post_init__(self) -> None:
        body = self.op.regions[0]
        roles = roles_of(body, staged_loads(body))
        self.products = tuple(product_of(self.lw, op) for op in roles.products)
        self.roles = made_late(roles, body) if self.products[-1].in_registers else roles
        undivided = self.over[1] == 1 or self.products[0].in_registers  # no tile is used in both of two steps
        if self.roles.late and undivided and needs_no_step(body, roles, staged_loads(body)):
            self.early = max(1, self.over[1] - 1)

    # -- names ----------------------------------------------------------------------------------------

    @cached_property
    def tile_names(self) -> dict[Value, str]:
        """What the schedule calls each loaded tile."""
        names: dict[Value, str] = {}
        for load in self.ring:
            name = load.op.result.name or "tile"
            names[load.op.result] = name if name not in names.values() else f"{name} {len(names)}"
        return names

    def load_of(self, value: Value) -> StagedLoad:
        """The load of the ring that brings a tile."""
        return next(load for load in self.ring if load.op.result is value)

    def is_direct(self) -> bool:
        """Whether tiles go straight to LDS."""
        return DIRECT in self.lw.target.direct_to_lds_widths

    # -- parts ----------------------------------------------------------------------------------------

    def parts(self, operand: Operand) -> int:
        """In how many parts an operand is used."""
        return self.over[0 if operand.which == "a" else 1]

    def is_chained(self, operand: Operand) -> bool:
        """Whether it multiplies what the step's first product became: it is split over depth, as that over columns."""
        return len(self.products) > 1 and operand.op is self.products[-1].op and self.products[-1].in_registers

    def part(self, operand: Operand, number: int) -> Operand:
        """One part of an operand."""
        if self.is_chained(operand):
            return operand.deep(number, self.parts(operand))
        count = len(operand.places) // self.parts(operand)
        return replace(operand, places=operand.places[number * count : (number + 1) * count])

    def shared_operands(self, product: Product) -> list[Operand]:
        """Those that are read from LDS."""
        return [product.second] if product.in_registers else [product.first, product.second]

    def waits_later(self, operand: Operand) -> bool:
        """Whether transposing reads are awaited at the end of their cluster, beside vector work, not one by one.

        Until then they take registers that a single product, with the largest accumulator, does not have.
        """
        return len(self.products) > 1 and is_transposing(self.lw, operand)

    def fragment(self, operand: Operand, number: int) -> Fragment:
        """One part of an operand, with what its reads cost."""
        part = self.part(operand, number)
        per_lane = part.per_lane * len(part.order.merged)
        registers = per_lane * len(part.places) * part.dtype.nbytes // 4
        shared = self.load_of(operand.value).shared
        reads = operand_reads(self.lw, operand.op, operand.value, transposed=shared.block is not None)
        width = reads[0].access.width if reads else part.dtype.nbytes
        instructions = len(part.places) * per_lane * part.dtype.nbytes // width
        return Fragment(
            self.tile_names[operand.value], number, max(1, registers), instructions, not self.waits_later(part)
        )

    def runs(self, operand: Operand) -> int:
        """Bytes of one part of a tile that lie together in LDS."""
        rows = operand.depth if self.is_chained(operand) else operand.mfma.m * len(operand.places)
        return rows // self.parts(operand) * self.load_of(operand.value).shared.pitch

    def can_split(self, over: tuple[int, int]) -> bool:
        """Whether loads and reads of parts are whole instructions of all waves."""
        if over == (1, 1):
            return True
        if not self.is_direct() or (self.products[0].in_registers and not self.roles.late):
            return False
        if len(self.products) > 1 and (over[0] > 1 or not self.roles.late):
            return False
        return all(self.splits(operand, over) for p in self.products for operand in self.shared_operands(p))

    def splits(self, operand: Operand, over: tuple[int, int]) -> bool:
        """Whether loads and reads of an operand's parts are whole instructions of all waves."""
        parts = over[0 if operand.which == "a" else 1]
        load = self.load_of(operand.value)
        rows = self._split_rows(operand, parts)
        wave_bytes = load.stage_bytes // parts // self.lw.waves
        return (
            rows > 0
            and load.stage_bytes % (parts * self.lw.waves * WAVE * DIRECT) == 0
            and rows * load.shared.pitch % wave_bytes == 0
        )

    def _split_rows(self, operand: Operand, parts: int) -> int:
        """Rows in LDS of each part; 0 where parts are no runs of rows."""
        if self.is_chained(operand):
            order, depth = operand.order, operand.depth // parts
            if operand.depth_last or operand.depth % parts or len(order.merged) % parts:
                return 0
            deep = [operand.deep(number, parts).order for number in range(parts)]
            inside = all(i * depth <= min(o.flat) and o.reach <= (i + 1) * depth for i, o in enumerate(deep))
            return depth if inside else 0
        blocks, rows = len(operand.places), operand.mfma.m
        whole = operand.places == [i * rows for i in range(blocks)] and operand.depth_last
        return rows * (blocks // parts) if whole and blocks % parts == 0 else 0

    # -- the loop -------------------------------------------------------------------------------------

    def pipelined(self) -> PipelinedLoop:
        """What the generator of schedules needs to know."""
        order = self._order()
        bursts = tuple(self._burst(at, *part) for at, part in enumerate(order))
        return PipelinedLoop(
            self.lw.target.name,
            self.lw.waves,
            tuple(self._source(load) for load in self.ring),
            bursts,
            self._vector(memory(0)),
            tuple(self._held()),
            ELSEWHERE,
            self.op.loc,
        )

    def _held(self) -> Iterator[RegisterTile]:
        """Accumulators, and operands that are in registers."""
        for number, product in enumerate(self.products):
            yield RegisterTile(f"product {number}", len(self.lw.layout(product.op.result).items))
            if product.in_registers:
                operand = product.first
                items = len(operand.places) * operand.per_lane * len(operand.order.merged)
                yield RegisterTile(f"factor {number}", max(1, items * operand.dtype.nbytes // 4))
        there = self._for_vector_work()
        if there:
            yield RegisterTile("for vector work", there)

    def _for_vector_work(self) -> int:
        """Items that are there from the start of a step, such as a mask's, for work on what products made."""
        later = (op for ops in (*self.roles.before, self.roles.after) for op in ops)
        used = {v for op in later for v in op.operands}
        used |= {v for op in self.roles.start if op.name in RENAMING and op.result in used for v in op.operands}
        made = [op for op in self.roles.start if op.name not in RENAMING and not op.result.tile.is_scalar]
        return sum(len(self.lw.layout(op.result).items) for op in made if op.result in used)

    def _order(self) -> list[tuple[int, int, int, int]]:
        """The bursts of a step: product, part of the rows, part of the columns or the depth, steps that it is late."""
        last = len(self.products) - 1
        found = []
        for number, product in enumerate(self.products):
            rows, cols = (self.parts(o) for o in (product.first, product.second))
            late = int(self.roles.late and number == last)
            found += [(number, i, j, late) for i in range(rows) for j in range(cols)]
        return [*found[self.early :], *((number, i, j, -1) for number, i, j, _ in found[: self.early])]

    def _burst(self, at: int, number: int, row: int, col: int, late: int) -> Burst:
        work = self._work(f"product {number} {row} {col}", f"product {number}", number)
        before = self._vector(memory(at)) if at else ()
        return Burst(work, self._uses(number, row, col), before, late, self._vector(compute(at)))

    def _uses(self, number: int, row: int, col: int) -> tuple[Fragment, ...]:
        operands = self.shared_operands(self.products[number])
        return tuple(self.fragment(o, col if o.which == "b" else row) for o in operands)

    @cached_property
    def vector(self) -> dict[str, tuple[Portion, ...]]:
        """Vector work by cluster: before a burst, or among its matrix instructions."""
        order = self._order()
        if not self.roles.late:
            first = {number: at for at, (number, row, col, _) in reversed(list(enumerate(order)))}
            work = {memory(first[n]): tuple(map(Portion, ops)) for n, ops in enumerate(self.roles.before) if ops}
            return {**work, memory(0): tuple(map(Portion, self.roles.after))}
        body, late = self.op.regions[0], self._urgent_first(self.roles.before[-1])
        done = max((at for at, part in enumerate(order) if part[0] == 0 and part[3] == 0), default=-1)
        free = max(at for at, part in enumerate(order) if part[3] > 0)
        yielded = body.terminator.operands.index(self.products[-1].op.result)
        intervals = [self._interval(at) for at in range(max(done, 0) + 1, len(order) + 1)]
        earliest = {body.args[1 + yielded]: memory((free + 1) % len(order))}
        return StepSlots(self.lw, late, intervals, "" if done >= 0 else compute(0), earliest).shared()

    def _interval(self, at: int) -> Interval:
        """The memory cluster after a burst."""
        order = self._order()
        before, after = order[at - 1], order[at % len(order)]
        reads = sum(fragment.lgkm for fragment in self._uses(*after[:3]))
        burst, own = (self._work("", "", part[0]) for part in (before, after))
        return Interval(memory(at % len(order)), reads, burst, compute(at), own)

    def _urgent_first(self, work: Sequence[Op]) -> list[Op]:
        """What the last product multiplies, and what that needs, before the rest."""
        made = {result: op for op in work for result in op.results}
        needed = ancestors(self.products[-1].op.operands[1:2], made)
        return sorted(work, key=lambda op: needed.isdisjoint(op.results))

    def _work(self, name: str, accumulator: str, number: int) -> Compute:
        product = self.products[number]
        mfma = product.mfma
        blocks = len(product.first.places) * len(product.second.places) * len(product.first.order.items)
        count = blocks // (self.parts(product.first) * self.parts(product.second))
        held = (Held(accumulator),)
        return Compute(name, held, held, "matrix", count, count * 4 * mfma.passes, mfma.passes)

    @cached_property
    def packed(self) -> set[Value]:
        """What packed work takes of what the step has computed."""
        taken = {v for work in self.vector.values() for p in work if p.packed for v in p.op.operands}
        made = self.lw.definitions
        return {v for v in taken if v in made and made[v].name not in RENAMING}

    def leaving(self, cluster: str) -> list[Portion]:
        """Portions of a cluster's vector work, in whole registers, that work of another one needs."""
        others = (portions for other, portions in self.vector.items() if other != cluster)
        elsewhere = {v for portions in others for p in portions for v in p.op.operands}
        elsewhere |= set(self.products[-1].op.operands)
        elsewhere -= self.packed  # which are anchored one by one
        here = [p for p in self.vector[cluster] if p.of > 1 and p.op.result in elsewhere and p.op.name != "reduce_sum"]
        return [p for p in here if p.op.result.tile.dtype.bits in (16, 32)]

    def _vector(self, cluster: str) -> tuple[Compute, ...]:
        """The vector work of a cluster as one op of the schedule, with an estimate of its time."""
        portions = self.vector.get(cluster, ())
        if not portions:
            return ()
        instructions, cycles = cost(self.lw, portions)
        return (Compute(f"vector {cluster}", (), (), "vector", instructions, cycles),)

    def _source(self, load: StagedLoad) -> Source:
        parts = next(
            (self.parts(o) for p in self.products for o in self.shared_operands(p) if o.value is load.op.result), 1
        )
        part_bytes = load.stage_bytes // parts
        vm = -(-part_bytes // (WAVE * (self.loaders or self.lw.waves) * DIRECT))
        name = self.tile_names[load.op.result]
        if self.is_direct():
            return Source(name, parts, self.stages, part_bytes, vm)
        size = load.tile.dtype.nbytes
        block = load.shared.block
        put = block[0] * size if block else DIRECT
        puts = -(-part_bytes // (self.lw.threads * put))
        return Source(name, parts, self.stages, part_bytes, vm, puts, -(-part_bytes // (self.lw.threads * 4)))


def choose_bursts(lw: AmdLowering, op: Op, ring: Sequence[StagedLoad], stages: int) -> Bursts | None:
    """The fewest parts whose registers fit and whose loads are in flight long enough, else those in flight longest.

    None where a loop that does not fit comes after one that does: a remainder, which the default schedule can do.
    """
    _expect_schedulable(lw, op, ring, stages)
    there = registers_of_a_lane(lw.target, lw.waves)
    candidates = []
    for over in SPLITS:
        bursts = Bursts(lw, op, ring, stages, over)
        if bursts.can_split(over):
            loop = bursts.pipelined()
            if loop.registers <= there:
                candidates.append((min(flight(loop), slowest_load(lw.target)), -len(loop.bursts), bursts))
    if not candidates and not lw.plan.schedules:
        raise too_many_registers(lw, op, Bursts(lw, op, ring, stages).pipelined(), there)
    return max(candidates, key=lambda c: c[:2])[2] if candidates else None


def too_many_registers(lw: AmdLowering, op: Op, loop: PipelinedLoop, there: int) -> UnsupportedError:
    """The error for a loop that does not fit the registers."""
    why = f"accumulators, fragments and {loop.reserve} others take {loop.registers} registers a lane, there are {there}"
    return refused(lw, op, why, "use smaller tiles, or drop schedule=")


def _expect_schedulable(lw: AmdLowering, op: Op, ring: Sequence[StagedLoad], stages: int) -> None:
    if lw.waves != 2 * lw.target.simds_per_cu:
        raise refused(lw, op, f"it needs 8 waves, there are {lw.waves}", "drop waves=, or pass waves=8")
    expect_bursts(lw, op, ring, stages, lw.waves)


def expect_bursts(lw: AmdLowering, op: Op, ring: Sequence[StagedLoad], stages: int, loaders: int) -> None:
    """An error unless the loop only multiplies what it loads, by even shares of the waves that load, and the like."""
    body = op.regions[0]
    ahead = {load.op for load in ring}
    loaded = {load.op.result for load in ring}
    if stages < 2:
        raise refused(lw, op, "only one step's tiles fit the LDS", "use smaller tiles or a smaller depth of the step")
    uneven = next((load for load in ring if load.stage_bytes % (loaders * WAVE * DIRECT)), None)
    if uneven is not None and DIRECT in lw.target.direct_to_lds_widths:  # waits count what every wave issues
        why = f"the loads of {uneven.tile} are not the same number of whole instructions for all waves"
        raise refused(lw, uneven.op, why, "use larger tiles, or drop schedule=")
    for inner in body.ops:
        if inner in ahead or inner.name in ("mma", "yield"):
            continue
        if inner.regions or OPS[inner.name].effect != "none" or any(v in loaded for v in inner.operands):
            raise refused(lw, inner, f"`{inner.name}` is neither a product nor work on registers", "drop schedule=")
    for product in (o for o in body.ops if o.name == "mma"):
        _expect_loaded(lw, product, loaded)
    used = [v for o in body.ops if o.name == "mma" for v in o.operands[1:] if v in loaded]
    if len(used) != len(set(used)) or len(used) != len(loaded):
        raise refused(lw, op, "each loaded tile must be the operand of one product", "load it again, or drop schedule=")


def _expect_loaded(lw: AmdLowering, op: Op, loaded: set[Value]) -> None:
    product = product_of(lw, op)
    operands = op.operands[2:] if product.in_registers else op.operands[1:]
    if any(v not in loaded for v in operands):
        why = "an operand of the product is not loaded by the loop"
        raise refused(lw, op, why, "load it in the loop, or drop schedule=")


def refused(lw: AmdLowering, op: Op, why: str, hint: str) -> UnsupportedError:
    """The schedule does not apply, and why."""
    return UnsupportedError(f"schedule={lw.plan.schedule!r} does not apply to this loop: {why}", loc=op.loc, hint=hint)
