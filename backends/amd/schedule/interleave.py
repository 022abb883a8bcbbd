"""4-wave interleave: one wave on each SIMD, with all registers, and memory instructions between matrix instructions.

A step is four quadrants, products of halves of both operands. While one quadrant multiplies, single reads bring the
half that a later one needs, and single loads refill slots that nobody reads any more:

    quadrant   product   reads           loads, `slots` steps ahead
    0          a0 b0     b1              a0
    1          a0 b1     a1              b0
    2          a1 b0     a0, next step   b1
    3          a1 b1     b0, next step   a1

Each half's slot is loaded again only after a barrier that follows the wait for its reads, which two barriers a step
do: at quadrants 0 and 2. A tile whose halves lie in the same rows of LDS is loaded whole, when both are read: from
quadrant 2 on, after what else is free by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from warpwave.backends.amd.schedule.form import (
    Barrier,
    Cluster,
    Compute,
    Group,
    Held,
    Idle,
    LoadDirect,
    Op,
    Part,
    Pointer,
    Read,
    RegisterTile,
    Scalar,
    Schedule,
    SharedTile,
    Wait,
)
from warpwave.tiles.errors import Loc

ORDER = ("a0", "b0", "b1", "a1")  # of the halves' loads
QUADRANTS = (("a0", "b0"), ("a0", "b1"), ("a1", "b0"), ("a1", "b1"))
LOADS_A_POINTER = 4  # of 1024 bytes, within the 12 bits of an instruction's offset
READS = (("b1", 0), ("a1", 0), ("a0", 1), ("b0", 1))  # in each quadrant, and how many steps ahead


@dataclass(frozen=True)
class Half:
    """Half of an operand for one wave: `blocks` of the instruction's rows or columns, each `depth` instructions deep.

    A fragment, which one instruction takes, has `registers` and is brought by `reads` instructions. The tile is loaded
    in `parts`, by halves or whole; `loads` bring the wave's share of a part into LDS, `nbytes` for all waves.
    """

    tile: str
    blocks: int
    depth: int
    registers: int
    reads: int
    loads: int
    nbytes: int
    parts: int = 2

    def pieces(self, block: int, depth: int) -> tuple[int, ...]:
        """Those of the register tile that are a fragment."""
        first = (depth * self.blocks + block) * self.reads
        return tuple(range(first, first + self.reads))

    @property
    def all_reads(self) -> int:
        """Read instructions of the half."""
        return self.blocks * self.depth * self.reads


@dataclass(frozen=True)
class Quadrants:
    """The loop: halves of a and b, ring slots, passes of the instruction and registers of a block of the result."""

    target: str
    a: Half
    b: Half
    slots: int
    passes: int
    result: int
    reserve: int = 0
    loc: Loc | None = None


def interleave(loop: Quadrants) -> Schedule:
    """The schedule, with registers still to be allocated; rounds go through all slots."""
    steps = _Steps(loop)
    slots = loop.slots
    ends = {slots + more: (*steps.full(more), *steps.last(more)) for more in range(slots)}
    return Schedule(
        name="interleave",
        target=loop.target,
        groups=(Group("all", 4),),
        shared=tuple(SharedTile(h.tile, h.parts, slots, h.nbytes, h.loads) for h in (loop.a, loop.b)),
        registers=tuple(steps.registers()),
        prologue=steps.prologue(),
        body=steps.full(slots),
        epilogues=ends,
        period=slots,
        tail=slots,
        emission="assembly",
        reserve=loop.reserve,
        loc=loop.loc,
    )


def flight(loop: Quadrants) -> int:
    """Clocks between a load and its wait, for the load that has fewest, while the matrix cores work all the time."""
    return _Steps(loop).flight()


def one_by_one(loop: Quadrants) -> Schedule:
    """Steps that load, wait, read and multiply, one after the other: for tiles that are not whole."""
    steps = _Steps(replace(loop, slots=1))
    loads = [LoadDirect(steps.part(name, 0), steps.half(name).loads) for name in steps.loaded]
    load: tuple[Op, ...] = (Wait(lgkm=0), Barrier(), *loads, Wait(vm=0), Barrier())
    reads: tuple[Op, ...] = tuple(read for name in ORDER for read in steps.reads(name, 0))
    products: tuple[Op, ...] = tuple(op for factors in QUADRANTS for op in steps.products(*factors, 0))
    return Schedule(
        name="one step at a time",
        target=loop.target,
        groups=(Group("all", 4),),
        shared=tuple(SharedTile(h.tile, h.parts, 1, h.nbytes, h.loads) for h in (loop.a, loop.b)),
        registers=tuple(steps.registers()),
        prologue=(),
        body=(Cluster("load", load, "memory"), Cluster("multiply", (*reads, Wait(lgkm=0), *products), "compute")),
        epilogues={0: ()},
        emission="assembly",
        reserve=loop.reserve,
        loc=loop.loc,
    )


@dataclass(frozen=True)
class _Steps:
    loop: Quadrants

    def half(self, name: str) -> Half:
        return self.loop.a if name[0] == "a" else self.loop.b

    def part(self, name: str, step: int) -> Part:
        half = self.half(name)
        return Part(half.tile, int(name[1]) if half.parts == 2 else 0, step)

    @property
    def loaded(self) -> tuple[str, ...]:
        """What is loaded at a time, in this order; a whole tile goes by its second half's name, before others."""
        early = [name for name in ORDER[:2] if self.half(name).parts == 2]
        return (*early, *sorted(ORDER[2:], key=lambda name: self.half(name).parts))

    def end(self, *names: str) -> int:
        """Load instructions of a step up to the last that brings some of these halves."""
        ends = dict(zip(self.loaded, accumulate(self.half(name).loads for name in self.loaded), strict=True))
        return max(ends[name if name in ends else f"{name[0]}1"] for name in names)

    @property
    def early(self) -> int:
        """Load instructions of a step before quadrant 2."""
        return sum(self.half(name).loads for name in self.loaded if name[1] == "0")

    def registers(self) -> Iterator[RegisterTile]:
        """Accumulators, then halves."""
        loop = self.loop
        blocks = loop.a.blocks * loop.b.blocks
        yield from (RegisterTile(f"c{a[1]}{b[1]}", blocks * loop.result, blocks) for a, b in QUADRANTS)
        for name in ("a0", "a1", "b0", "b1"):
            half = self.half(name)
            yield RegisterTile(name, half.blocks * half.depth * half.registers, half.all_reads)

    # -- the parts ------------------------------------------------------------------------------------

    def prologue(self) -> tuple[Cluster, ...]:
        """All slots are loaded, and what the first quadrant needs is read."""
        landed = Wait(vm=self.per_step * self.loop.slots - self.end("a0", "b0"))
        return (
            Cluster("fill", (Wait(lgkm=0), Barrier(), *self.filling(), landed, Barrier()), "memory"),
            Cluster("first", (*self.reads("a0", 0), *self.reads("b0", 0)), "memory"),
        )

    def filling(self) -> Iterator[Op]:
        """The loads of the first steps, all slots."""
        for step in range(self.loop.slots):
            for name in self.loaded:
                ops: list[Op] = []
                for load in self.loads(name, step):
                    ops += [*_pointer(load), load]
                yield from _apart(ops)
            yield from self.moved()

    def moved(self) -> tuple[Scalar, ...]:
        """The next loads are a step further on."""
        return Scalar(f"next {self.loop.a.tile}"), Scalar(f"next {self.loop.b.tile}")

    def full(self, count: int) -> tuple[Cluster, ...]:
        """Steps that load ahead."""
        slots = self.loop.slots * self.per_step
        newer = slots - self.end("a1", "b1"), slots - self.per_step + self.early - self.end("a0", "b0")
        return tuple(c for step in range(count) for c in self.step(step, newer, loads=True))

    def last(self, first: int) -> tuple[Cluster, ...]:
        """The last steps, one for each slot, of which all is loaded; the very last reads nothing ahead."""
        found: list[Cluster] = []
        for number in range(self.loop.slots):
            later = self.loop.slots - 1 - number
            second = later * self.per_step - self.end("a0", "b0") if later else None
            newer = (later + 1) * self.per_step - self.end("a1", "b1"), second
            found += self.step(first + number, newer, loads=False)
        return tuple(found)

    @property
    def per_step(self) -> int:
        """Load instructions of a step."""
        return sum(self.half(name).loads for name in self.loaded)

    def step(self, step: int, newer: tuple[int, int | None], *, loads: bool) -> tuple[Cluster, ...]:
        """Four quadrants; `newer` loads may be in flight where the first and the third begin."""
        waits: tuple[tuple[Op, ...], ...] = (
            (Wait(vm=newer[0], lgkm=0), Barrier()),
            (Wait(lgkm=0),),
            (Wait(vm=newer[1], lgkm=0), Barrier()) if newer[1] is not None else (Wait(lgkm=0),),
            (),
        )
        clusters, fills = [], self.fills(step + self.loop.slots) if loads else ((),) * 4
        for number, (factors, (read, ahead)) in enumerate(zip(QUADRANTS, READS, strict=True)):
            reads = self.reads(read, step + ahead) if not ahead or newer[1] is not None else ()
            ops: list[Op] = [*interleaved(list(self.products(*factors, step)), reads, fills[number])]
            ops += self.moved() if loads and number == 3 else ()
            clusters.append(Cluster(f"quadrant {number}", (*waits[number], *ops), "compute"))
        return tuple(clusters)

    def fills(self, step: int) -> tuple[tuple[LoadDirect, ...], ...]:
        """Each quadrant's share of a step's loads."""
        found = [load for name in self.loaded for load in self.loads(name, step)]
        edges = (0, self.early // 2, self.early, (self.early + len(found)) // 2, len(found))
        return tuple(tuple(found[begin:end]) for begin, end in pairwise(edges))

    def flight(self) -> int:
        """Clocks from a load to the wait for it, for what has fewest."""
        times = [at + (i + 1) / len(fill) for at, fill in enumerate(self.fills(0)) for i in range(len(fill))]
        later = 4 * self.loop.slots - times[self.end("a1", "b1") - 1]
        first = 4 * self.loop.slots - 2 - times[self.end("a0", "b0") - 1]
        products = self.loop.a.blocks * self.loop.b.blocks * self.loop.a.depth
        return int(min(later, first) * products * 4 * self.loop.passes)

    # -- ops ------------------------------------------------------------------------------------------

    def products(self, a: str, b: str, step: int) -> Iterator[Compute]:
        """All blocks for the first instruction's depth, then for the next: results are not awaited."""
        loop, result = self.loop, f"c{a[1]}{b[1]}"
        for depth in range(loop.a.depth):
            for m in range(loop.a.blocks):
                for n in range(loop.b.blocks):
                    factors = (
                        Held(b, self.part(b, step), loop.b.pieces(n, depth)),
                        Held(a, self.part(a, step), loop.a.pieces(m, depth)),
                    )
                    block = Held(result, None, (m * loop.b.blocks + n,))
                    cycles = 4 * loop.passes
                    yield Compute(f"{result} {m} {n}", factors, (block,), "matrix", 1, cycles, loop.passes)

    def reads(self, name: str, step: int) -> tuple[Read, ...]:
        """A half, instruction by instruction."""
        return tuple(Read(self.part(name, step), name, 1, (piece,)) for piece in range(self.half(name).all_reads))

    def loads(self, name: str, step: int) -> tuple[LoadDirect, ...]:
        """What is loaded at a time, instruction by instruction."""
        pieces = range(self.half(name).loads)
        return tuple(LoadDirect(self.part(name, step), 1, (i,), pointer=i - i % LOADS_A_POINTER) for i in pieces)


def interleaved(products: Sequence[Compute], reads: Sequence[Read], loads: Sequence[LoadDirect]) -> Iterator[Op]:
    """Memory instructions one by one after products: reads first, which the next quadrant waits for, loads spread.

    A load's pointer (M0) is set a product before it, because the instruction after a write of M0 must not be a load.
    Where there are too few products for that, both stand after one.
    """
    slots = len(products) - 1
    after: dict[int, list[Op]] = {i: [read] for i, read in zip(range(slots), reads, strict=False)}
    if len(reads) > slots:
        after[slots - 1] += reads[slots:]
    ahead = int(slots >= 2 * len(loads))
    start = min(len(reads), slots - 2 * len(loads)) if ahead else 0
    for number, load in enumerate(loads):
        at = start + (number * 2 + 1) * (slots - start) // (2 * len(loads))
        after.setdefault(at - ahead, []).extend(_pointer(load))
        after.setdefault(at, []).append(load)
    ops: list[Op] = []
    for i, product in enumerate(products):
        ops += [product, *after.get(i, ())]
    yield from _apart(ops)


def _pointer(load: LoadDirect) -> tuple[Pointer, ...]:
    """Before the first of the loads that share it."""
    if load.pointer is None or (load.pointer,) != load.pieces:
        return ()
    return (Pointer(load.value, load.pointer),)


def _apart(ops: Iterable[Op]) -> Iterator[Op]:
    """With a wait state between a pointer and a load that would follow at once."""
    before: Op | None = None
    for op in ops:
        if isinstance(before, Pointer) and isinstance(op, LoadDirect):
            yield Idle(1)
        yield op
        before = op
