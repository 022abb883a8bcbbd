"""Producers and consumers: some waves only load, the others only read LDS and multiply, one barrier a step.

A barrier begins each step. By then the step's tiles have landed, which the producers have waited for, and the tiles
of the step before have been read, which the consumers have waited for; so producers load into their slots.

On AMD all waves of a workgroup get the same share of the registers: what producers do not use nobody can, and the
result that fits the consumers gets smaller (HipKittens, table 2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.schedule.form import (
    Barrier,
    Cluster,
    Fence,
    Group,
    LoadDirect,
    Op,
    Part,
    Priority,
    Read,
    Schedule,
    SharedTile,
    Wait,
)
from warpwave.backends.amd.schedule.pipelined import Fragment, PipelinedLoop
from warpwave.tiles.errors import InternalError

CONSUMERS, PRODUCERS = "consumers", "producers"


def producer_consumer(loop: PipelinedLoop, producers: int) -> Schedule:
    """The schedule of a loop whose sources' `vm` are instructions of a producer."""
    if any(source.puts or source.parts > 1 for source in loop.sources) or any(b.late for b in loop.bursts):
        raise InternalError("producers load whole tiles straight to LDS, for products of their own step", loc=loop.loc)
    roles = _Roles(loop)
    return Schedule(
        name="producer-consumer",
        target=loop.target,
        groups=(Group(CONSUMERS, loop.waves), Group(PRODUCERS, producers)),
        shared=tuple(SharedTile(s.name, s.parts, s.slots, s.nbytes) for s in loop.sources),
        registers=tuple(loop.tiles()),
        prologue=roles.prologue(),
        body=(roles.producing(), roles.consuming()),
        epilogues={0: roles.epilogue()},
        reserve=loop.reserve,
        loc=loop.loc,
    )


def flight(loop: PipelinedLoop, simds: int) -> int:
    """Clocks between a load and its wait while the matrix cores work all the time."""
    step = loop.waves * sum(burst.work.cycles for burst in loop.bursts) // simds
    return (loop.sources[0].slots - 1) * step


@dataclass(frozen=True)
class _Roles:
    loop: PipelinedLoop

    @property
    def ahead(self) -> int:
        """Steps that are loaded before the first one is computed: all slots but one, which is being read."""
        return min(source.slots for source in self.loop.sources) - 1

    def landed(self) -> Wait:
        """The next step's tiles are there; those of later steps may be in flight."""
        newer = (self.ahead - 1) * sum(source.vm for source in self.loop.sources)
        return Wait(vm=min(newer, TARGETS[self.loop.target].max_vmcnt))

    def loads(self, step: int) -> Iterator[LoadDirect]:
        """All tiles of a step."""
        return (LoadDirect(Part(source.name, 0, step), source.vm) for source in self.loop.sources)

    def producing(self) -> Cluster:
        """A step of the producers."""
        return Cluster("produce", (*self.loads(self.ahead), self.landed(), Barrier()), "memory", (PRODUCERS,))

    def consuming(self) -> Cluster:
        """A step of the consumers. Their reads have ended anyway when the products that use them are issued."""
        ops: list[Op] = [Fence()]
        for number, burst in enumerate(self.loop.bursts):
            ops += burst.before
            first = (fragment for fragment in burst.uses if self.loop.used(fragment)[0] == number)
            ops += (self.read(fragment) for fragment in first)
            ops.append(self.loop.work(number))
        ops += self.loop.after
        return Cluster("consume", (*ops, Fence(), Wait(lgkm=0), Barrier()), "compute", (CONSUMERS,))

    def read(self, fragment: Fragment) -> Read:
        """A fragment of this step."""
        value = Part(fragment.tile, fragment.part)
        return Read(value, self.loop.buffers[fragment], fragment.lgkm, tracked=fragment.tracked)

    def prologue(self) -> tuple[Cluster, ...]:
        """Nobody reads the ring any more; then the first steps are loaded, by waves that are served first."""
        first = tuple(load for step in range(self.ahead) for load in self.loads(step))
        return (
            Cluster("nobody reads", (Wait(lgkm=0), Barrier())),
            Cluster("produce ahead", (Priority(1), *first, self.landed()), "memory", (PRODUCERS,)),
            Cluster("the first step is there", (Barrier(),)),
        )

    def epilogue(self) -> tuple[Cluster, ...]:
        """Nothing is on its way to LDS any more."""
        return (Cluster("nothing in flight", (Wait(vm=0, lgkm=0), Barrier())),)
