"""A pipelined loop as bursts of matrix work: which op belongs where, and in how many parts tiles are used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from warpwave.backends.amd.arch import DIRECT, WAVE
from warpwave.backends.amd.gate import registers_of_a_lane
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.mma import Product, product_of
from warpwave.backends.amd.lower.operands import Operand, is_transposing
from warpwave.backends.amd.lower.place import operand_reads
from warpwave.backends.amd.rates import CU_RATES, SLOT, slowest_load
from warpwave.backends.amd.schedule.form import Compute, Held, RegisterTile
from warpwave.backends.amd.schedule.pingpong import flight
from warpwave.backends.amd.schedule.pipelined import Burst, Fragment, PipelinedLoop, Source
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.ir import OPS, Block, Op, Value
from warpwave.tiles.simt.pipeline import StagedLoad, staged_loads
from warpwave.tiles.simt.products import ancestors

ELSEWHERE = 56  # registers a lane for addresses, offsets and what else there is
SPLITS = ((1, 1), (1, 2), (2, 1), (2, 2), (2, 4), (4, 2), (4, 4))
TRANSCENDENTAL = frozenset(["exp", "exp2", "log", "log2", "sqrt", "rsqrt", "rcp", "div"])


def cost(lw: AmdLowering, ops: Sequence[Op]) -> tuple[int, int]:
    """Instructions of vector work on registers, and their clocks, by the items that they make."""
    items = [(op, sum(len(lw.layout(r).items) for r in op.results if r in lw.layouts)) for op in ops]
    slow = CU_RATES[lw.target.name].transcendental
    clocks = sum(n * (slow if op.name in TRANSCENDENTAL else SLOT) for op, n in items)
    return sum(n for _, n in items), clocks


@dataclass(frozen=True)
class Roles:
    """The ops of a loop's body by when they happen.

    `start` needs nothing of this step's products, `before[i]` happens between product i - 1 and product i because
    that needs it, and nothing in this step needs what comes `after`.
    """

    products: tuple[Op, ...]
    start: tuple[Op, ...]
    before: tuple[tuple[Op, ...], ...]
    after: tuple[Op, ...]
    late: bool = False


def made_late(lw: AmdLowering, roles: Roles, body: Block) -> Roles:
    """The last product one step late, where nothing but the next step needs it: then it has no vector work to await.

    The vector work of a step is split between its two memory clusters. What goes on with the product's result is
    in the second of them.
    """
    product = roles.products[-1]
    yielded = [i for i, v in enumerate(body.terminator.operands) if v is product.result]
    users = [op for op in body.ops if product.result in op.operands]
    if len(roles.products) != 2 or not roles.before[-1] or users != [body.terminator] or len(yielded) != 1:
        return roles
    work = [op for op in body.ops if op in (*roles.before[-1], *roles.after)]
    waiting: set[Value] = {body.args[1 + yielded[0]]}
    early: list[Op] = []
    half = cost(lw, work)[1] / 2
    for op in work:
        spent, more = cost(lw, early)[1], cost(lw, [op])[1]
        if any(v in waiting for v in op.operands) or spent + more / 2 > half:
            waiting.update(op.results)
        else:
            early.append(op)
    after = tuple(op for op in work if op not in early)
    return Roles(roles.products, roles.start, (*roles.before[:-1], tuple(early)), after, late=True)


def roles_of(body: Block, ahead: Sequence[Op]) -> Roles:
    """Sort the ops of a body; loads that run `ahead` have no place in it."""
    rest = [op for op in body.ops if op not in ahead and op.name != "yield"]
    products = [op for op in rest if op.name == "mma"]
    made = {result: op for op in rest for result in op.results}
    later: set[Op] = set(products)
    for op in rest:
        if any(made.get(v) in later for v in op.operands):
            later.add(op)
    placed: set[Op] = {op for op in rest if op not in later} | set(products)
    start = tuple(op for op in rest if op not in later)
    before = []
    for product in products:
        needed = _needed(product, made)
        before.append(tuple(op for op in rest if op in needed and op not in placed))
        placed.update(before[-1])
    return Roles(tuple(products), start, tuple(before), tuple(op for op in rest if op not in placed))


def _needed(op: Op, made: dict[Value, Op]) -> set[Op]:
    return {made[v] for v in ancestors(op.operands, made) if v in made}


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

    def __post_init__(self) -> None:
        body = self.op.regions[0]
        roles = roles_of(body, staged_loads(body))
        self.products = tuple(product_of(self.lw, op) for op in roles.products)
        self.roles = made_late(self.lw, roles, body) if self.products[-1].in_registers else roles

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

    def part(self, operand: Operand, number: int) -> Operand:
        """One part of an operand."""
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
        rows = operand.mfma.m * len(operand.places) // self.parts(operand)
        return rows * self.load_of(operand.value).shared.pitch

    def can_split(self, over: tuple[int, int]) -> bool:
        """Whether loads and reads of parts are whole instructions of all waves."""
        if over == (1, 1):
            return True
        if len(self.products) != 1 or not self.is_direct() or self.products[0].in_registers:
            return False
        return all(self.splits(operand, over) for operand in self.shared_operands(self.products[0]))

    def splits(self, operand: Operand, over: tuple[int, int]) -> bool:
        """Whether loads and reads of an operand's parts are whole instructions of all waves."""
        parts = over[0 if operand.which == "a" else 1]
        load, blocks = self.load_of(operand.value), len(operand.places)
        whole = operand.places == [i * operand.mfma.m for i in range(blocks)] and operand.depth_last
        wave_bytes = load.stage_bytes // parts // self.lw.waves
        run = operand.mfma.m * (blocks // parts) * load.shared.pitch
        return (
            whole
            and blocks % parts == 0
            and load.stage_bytes % (parts * self.lw.waves * WAVE * DIRECT) == 0
            and run % wave_bytes == 0
        )

    # -- the loop -------------------------------------------------------------------------------------

    def pipelined(self) -> PipelinedLoop:
        """What the generator of schedules needs to know."""
        bursts = tuple(b for i, product in enumerate(self.products) for b in self._bursts(i, product))
        after = self._vector("after", self.roles.after)
        accumulators = tuple(RegisterTile(f"product {i}", self._held(p)) for i, p in enumerate(self.products))
        return PipelinedLoop(
            self.lw.target.name,
            self.lw.waves,
            tuple(self._source(load) for load in self.ring),
            bursts,
            after,
            accumulators,
            ELSEWHERE,
            self.op.loc,
        )

    def _held(self, product: Product) -> int:
        return len(self.lw.layout(product.op.result).items)

    def _bursts(self, number: int, product: Product) -> list[Burst]:
        rows, cols = (self.parts(o) for o in (product.first, product.second))
        found = []
        for i in range(rows):
            for j in range(cols):
                uses = [self.fragment(o, j if o.which == "b" else i) for o in self.shared_operands(product)]
                work = self._work(f"product {number} {i} {j}", f"product {number}", product, rows * cols)
                first = i == j == 0 and number > 0
                before = self._vector(f"before {number}", self.roles.before[number]) if first else ()
                late = int(self.roles.late and number == len(self.products) - 1)
                found.append(Burst(work, tuple(uses), before, late))
        return found

    def _work(self, name: str, accumulator: str, product: Product, bursts: int) -> Compute:
        mfma = product.mfma
        blocks = len(product.first.places) * len(product.second.places) * len(product.first.order.items)
        count = blocks // bursts
        held = (Held(accumulator),)
        return Compute(name, held, held, "matrix", count, count * 4 * mfma.passes, mfma.passes)

    def _vector(self, name: str, ops: Sequence[Op]) -> tuple[Compute, ...]:
        """Vector work as one op of the schedule, with an estimate of its time."""
        if not ops:
            return ()
        instructions, cycles = cost(self.lw, ops)
        return (Compute(name, (), (), "vector", instructions, cycles),)

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


def choose_bursts(lw: AmdLowering, op: Op, ring: Sequence[StagedLoad], stages: int) -> Bursts:
    """The fewest parts whose registers fit and whose loads are in flight long enough, else those in flight longest."""
    _expect_schedulable(lw, op, ring, stages)
    there = registers_of_a_lane(lw.target, lw.waves)
    candidates = []
    for over in SPLITS:
        bursts = Bursts(lw, op, ring, stages, over)
        if bursts.can_split(over):
            loop = bursts.pipelined()
            if loop.registers <= there:
                candidates.append((min(flight(loop), slowest_load(lw.target)), -len(loop.bursts), bursts))
    if not candidates:
        raise too_many_registers(lw, op, Bursts(lw, op, ring, stages).pipelined(), there)
    return max(candidates, key=lambda c: c[:2])[2]


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
