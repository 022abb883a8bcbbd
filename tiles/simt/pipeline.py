"""What all schedules of a pipeline share: which loads can run ahead, their ring, and one iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from warpwave.tiles.ir import OPS, Block, Op
from warpwave.tiles.simt.context import Lowering, SharedTile
from warpwave.tiles.simt.control import assign_all, declare_carried, lower_block
from warpwave.tiles.types import TileType


@dataclass(frozen=True)
class StagedLoad:
    """One load of the loop that runs ahead, and its ring of shared tiles."""

    op: Op
    shared: SharedTile
    stage_bytes: int

    @property
    def tile(self) -> TileType:
        """The loaded tile's type."""
        tile: TileType = self.op.attrs["type"]
        return tile

    def at(self, stage: str) -> SharedTile:
        """The shared tile of a stage (a C expression)."""
        return replace(self.shared, shift=f"({stage}) * {self.stage_bytes}")


def staged_loads(body: Block) -> list[Op]:
    """Loads into shared memory whose coordinates are known before the iteration: functions of the counter."""
    known = set(body.args[:1])
    inside = {r for op in body.ops for r in op.results} | set(body.args)
    found = []
    for op in body.ops:
        ready = all(v in known or v not in inside for v in op.operands)
        if op.name == "load" and op.attrs["type"].space == "shared" and ready:
            found.append(op)
        elif OPS[op.name].effect == "none" and ready and all(r.type.is_scalar for r in op.results):  # type: ignore[union-attr]
            known.update(op.results)
    return found


def feeding(body: Block, loads: Sequence[Op]) -> list[Op]:
    """Scalar ops of the body that the loads' coordinates need, in order."""
    needed = {v for op in loads for v in op.operands}
    chosen = []
    for op in reversed(body.ops):
        if op not in loads and any(r in needed for r in op.results):
            chosen.append(op)
            needed.update(op.operands)
    return chosen[::-1]


def reserve(lw: Lowering, load: Op, stages: int) -> StagedLoad:
    """The ring of a load: its tile once for each stage."""
    shared = lw.place_shared(load.result)
    stage_bytes = lw.shared_bytes - shared.base
    lw.allocate(stage_bytes * (stages - 1))
    return StagedLoad(load, shared, stage_bytes)


@dataclass
class Loop:
    """A pipeline whose `ring` of loads runs ahead; `declare` comes first. `trips` is a C name."""

    lw: Lowering
    op: Op
    ring: list[StagedLoad]
    stages: int
    trips: str = field(init=False, default="")

    @property
    def body(self) -> Block:
        """The loop's only region."""
        return self.op.regions[0]

    @property
    def bounds(self) -> list[str]:
        """C names of start, stop and step."""
        return [self.lw.name(v) for v in self.op.operands[:3]]

    @property
    def names(self) -> list[str]:
        """C names of the carried values."""
        return [self.lw.name(v) for v in self.op.results]

    def declare(self) -> None:
        """The carried values, with what they start from; and how many iterations there are, in `trips`."""
        lw = self.lw
        declare_carried(lw, self.op, self.op.operands[3:])
        for arg, name in zip(self.body.args[1:], self.names, strict=True):
            lw.names[arg] = name
        self.trips = lw.fresh("trips")
        lw.body.line(f"const int {self.trips} = trip_count({', '.join(self.bounds)});")

    def rest(self) -> Block:
        """The body without the loads that run ahead."""
        ahead = {load.op for load in self.ring}
        return Block(self.body.args, [op for op in self.body.ops if op not in ahead])

    def coordinates_at(self, iteration: str) -> None:
        """Define the loop counter of an iteration, and what the loads' coordinates need of it."""
        self.count(iteration)
        for op in feeding(self.body, [load.op for load in self.ring]):
            self.lw.lower_op(op)

    def iteration(self, counter: str, stage: str, last: Callable[[], None] = lambda: None) -> None:
        """This iteration's computation, on its stage; `last` emits what stands before results are carried on."""
        lw = self.lw
        self.count(counter)
        for load in self.ring:
            lw.shared[load.op.result] = load.at(stage)
        lower_block(lw, self.rest())
        last()
        assign_all(lw, self.names, self.op.results, self.body.terminator.operands)

    def count(self, iteration: str) -> None:
        """Define the loop counter of an iteration."""
        start, _, step = self.bounds
        name = self.lw.define(self.body.args[0], self.body.args[0].name)
        self.lw.body.line(f"const int {name} = {start} + ({iteration}) * {step};")
