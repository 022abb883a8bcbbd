"""8-wave ping-pong: two groups of waves, one cluster apart, take turns at the matrix cores and at memory.

A loop is a sequence of bursts of matrix work. Before each burst a memory cluster reads what the burst needs from
LDS, and does what vector work must come before it; meanwhile the other group, one cluster behind, has its burst.
Where everything goes follows from what each burst needs and from the ring's slots:

- a fragment is read into registers that no burst needs any more, where that leaves the busiest memory cluster
  least busy, at the latest before its first burst;
- a slot is loaded again in the memory cluster after its last read: both groups have waited for that read by then;
- every memory cluster ends by waiting for its own reads, and for those of its loads that the next one reads. The
  other group's waits are one cluster later, which is still before the barrier that comes before the reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.schedule.form import (
    Barrier,
    Cluster,
    Compute,
    Fence,
    Group,
    LoadDirect,
    LoadRegisters,
    Op,
    Part,
    Priority,
    Put,
    Read,
    Schedule,
    SharedTile,
    Wait,
)
from warpwave.backends.amd.schedule.pipelined import PipelinedLoop
from warpwave.tiles.errors import InternalError

LEAD, LAG = "lead", "lag"
LONG = 512  # clocks of a burst from which memory clusters, without vector work, have time to spare
_TURN = Cluster("the groups take turns", (Fence(), Barrier()))
Access = TypeVar("Access", bound=Read | LoadDirect | LoadRegisters | Put)


def ping_pong(loop: PipelinedLoop) -> Schedule:
    """The schedule of a loop; memory clusters count on from the first step's, over all steps."""
    if loop.bursts[0].before:
        raise InternalError("vector work before a step's first product", loc=loop.loc)
    generator = _Generator(loop)
    half = loop.waves // 2
    return Schedule(
        name="ping-pong",
        target=loop.target,
        groups=(Group(LEAD, half), Group(LAG, half)),
        shared=tuple(SharedTile(s.name, s.parts, s.slots, s.nbytes) for s in loop.sources),
        registers=tuple(loop.tiles()),
        prologue=generator.prologue(),
        body=generator.body(),
        epilogues={0: generator.epilogue()},
        reserve=loop.reserve,
        loc=loop.loc,
    )


@dataclass(frozen=True)
class _Generator:
    loop: PipelinedLoop

    @property
    def count(self) -> int:
        """Bursts of a step."""
        return len(self.loop.bursts)

    # -- the two kinds of clusters --------------------------------------------------------------------

    def compute(self, number: int) -> Cluster:
        """One burst."""
        after = () if self._memory_first else (Priority(0),)
        work = (self.loop.work(number), *self.loop.bursts[number].beside)
        return Cluster(f"compute {number}", (Fence(), *work, *after, Fence(), Barrier()), "compute")

    @property
    def _memory_first(self) -> bool:
        """Whether memory clusters have priority over the other group's burst, not the burst.

        They have where they only issue accesses: AMD measured that (gfx950-gluon-tutorials, warp pipelining). Vector
        work would hold up the burst, whose instructions leave it time between them.
        """
        return not self.loop.after and not any(b.before or b.beside for b in self.loop.bursts)

    def memory(self, at: int, *, first: int | None = None) -> Cluster:
        """What happens before burst `at`; nothing of steps before the `first`, and then no vector work either."""
        reads, loads = list(self._from(first, self._reads(at))), list(self._from(first, self._loads(at)))
        puts = [op for op in loads if isinstance(op, Put)]
        before, after = ((Priority(level),) if self._memory_first else () for level in (1, 0))
        ops: list[Op] = [Fence(), *before, *reads]
        if puts:  # registers are written to LDS before they are loaded again, not copied
            ops += [*self._before_puts(at), *puts, Fence()]
        ops += [op for op in loads if not isinstance(op, Put)]
        if first is None:
            ops += self._vector(at % self.count)
        finishes = 0 if reads or puts else None
        landed = self._landed(at + 1, first)
        ops += [Fence(), *after]
        if finishes is not None or landed is not None:
            ties = dict.fromkeys(op.register for op in reads if not op.tracked)
            ops.append(Wait(vm=landed, lgkm=finishes, ties=tuple(ties)))
        if not self._memory_first:  # before the barrier: what a step begins with is not held up by the other group
            ops.append(Priority(1))
        return Cluster(f"memory {at % self.count}", (*ops, Barrier()), "memory")

    def _vector(self, number: int) -> tuple[Compute, ...]:
        return self.loop.bursts[number].before if number else self.loop.after

    def _reads(self, at: int) -> Iterator[Read]:
        for fragment, read in self.loop.reads.items():
            step, other = divmod(at - read, self.count)
            if other == 0:
                value = Part(fragment.tile, fragment.part, step - self.loop.late(fragment.tile, fragment.part))
                yield Read(value, self.loop.buffers[fragment], fragment.lgkm, tracked=fragment.tracked)

    def _last_read(self, tile: str, part: int) -> int:
        """Counted from the first memory cluster of the part's own step."""
        reads = (read for f, read in self.loop.reads.items() if (f.tile, f.part) == (tile, part))
        return max(reads) + self.count * self.loop.late(tile, part)

    def _loads(self, at: int) -> Iterator[LoadDirect | LoadRegisters | Put]:
        """What is written in a memory cluster into slots that were read for the last time in the one before."""
        for source in self.loop.sources:
            for part in range(source.parts):
                step, other = divmod(at - self._last_read(source.name, part) - 1, self.count)
                if other:
                    continue
                value = Part(source.name, part, step + source.slots)
                pieces = (part,) if source.parts > 1 else ()
                if source.puts:
                    yield Put(source.staging, value, source.puts, pieces)
                    later = replace(value, step=value.step + 1)
                    yield LoadRegisters(later, source.staging, source.vm, pieces, tracked=True)
                else:
                    yield LoadDirect(value, source.vm)

    # -- waits ----------------------------------------------------------------------------------------

    def _landed(self, at: int, first: int | None) -> int | None:
        """How many loads may be in flight when the reads of a memory cluster begin; None if it needs no load."""
        sources = {source.name: source for source in self.loop.sources}
        wanted = [read.value for read in self._from(first, self._reads(at)) if not sources[read.value.tile].puts]
        newer = min((self._newer(value, at - 1) for value in wanted), default=None)
        return None if newer is None else min(newer, TARGETS[self.loop.target].max_vmcnt)

    def _newer(self, value: Part, until: int) -> int:
        """Instructions that are issued after a part's load, up to and with a memory cluster."""
        newer = 0
        for at in range(until, until - 2 * self.count * max(s.slots for s in self.loop.sources), -1):
            for op in reversed(list(self._loads(at))):
                if isinstance(op, LoadDirect) and op.value == value:
                    return newer
                newer += 0 if isinstance(op, Put) else op.vm
        raise InternalError(f"{value} is read but never loaded", loc=self.loop.loc)

    def _before_puts(self, at: int) -> Iterator[Wait]:
        """What is written to LDS has arrived in registers: only newer loads are in flight."""
        written = {(op.value.tile, op.value.part) for op in self._loads(at) if isinstance(op, Put)}
        past = [op for before in range(at - self.count, at) for op in self._loads(before)]
        order = [op for op in past if isinstance(op, LoadRegisters | LoadDirect)]
        last = max(i for i, op in enumerate(order) if (op.value.tile, op.value.part) in written)
        yield Wait(vm=sum(op.vm for op in order[last + 1 :]))

    # -- the whole ------------------------------------------------------------------------------------

    def body(self) -> tuple[Cluster, ...]:
        """A step's bursts, with the memory clusters between them and the one before the next step's first."""
        pairs = ((self.compute(number), self.memory(number + 1)) for number in range(self.count))
        *clusters, last = (cluster for pair in pairs for cluster in pair)
        return (*self._turn, *clusters, replace(last, ops=last.ops[:-1]) if self._turn else last)

    @property
    def _turn(self) -> tuple[Cluster, ...]:
        """The last memory cluster's barrier, at the begin of the next step: the loop goes round before it.

        So counting and branching take the memory cluster's time where that has some to spare, not the burst's: on
        gfx950 and gfx942 148 and 142 of 4240 modelled clocks of a round with 256 x 256 tiles. With shorter bursts or
        vector work the memory cluster is the longer one, and a round would take 1 to 5 % more.
        """
        spare = self._memory_first and min(burst.work.cycles for burst in self.loop.bursts) >= LONG
        return (_TURN,) if spare else ()

    def prologue(self) -> tuple[Cluster, ...]:
        """The memory clusters up to the first step's first burst, as far as their steps exist; then the skew."""
        ahead = self.count * (max(s.slots for s in self.loop.sources) + 2)
        clusters = [Cluster("nobody reads", (Wait(lgkm=0), Barrier()))]
        for at in range(-ahead, 1):
            cluster = self.memory(at, first=0)
            waits = any(isinstance(op, Wait) for op in cluster.ops)
            ops = cluster.ops if waits and (at < 0 or not self._turn) else cluster.ops[:-1]
            if any(not isinstance(op, Fence | Priority) for op in ops):
                clusters.append(replace(cluster, ops=ops))
            if -self.count <= at < 0 and self.loop.bursts[at].late < 0:
                clusters.append(Cluster(f"early {at % self.count}", (Fence(), self.loop.work(at, -1), Fence())))
        return (*clusters, Cluster("the lag waits", (Barrier(),), only=(LAG,)))

    def epilogue(self) -> tuple[Cluster, ...]:
        """The groups meet again, nothing is on its way to LDS any more, and late bursts are caught up with."""
        clusters = [
            *self._turn,
            Cluster("the lead waits", (Barrier(),), only=(LEAD,)),
            Cluster("nothing in flight", (Wait(vm=0, lgkm=0), Barrier())),
        ]
        read_to = 1  # the last cluster of the rounds was memory 0
        for number, burst in enumerate(self.loop.bursts):
            if burst.late > 0:
                found = (read for at in range(read_to, number + 1) for read in self._reads(at))
                reads = [read for read in found if self._late(read.value) > 0]
                ties = tuple(dict.fromkeys(read.register for read in reads if not read.tracked))
                memory = (Wait(lgkm=0, ties=ties),) if reads else ()
                clusters.append(Cluster(f"late {number}", (*reads, *memory, Fence(), self.loop.work(number), Fence())))
                read_to = number + 1
        return tuple(clusters)

    def _late(self, value: Part) -> int:
        return self.loop.late(value.tile, value.part)

    def _from(self, first: int | None, ops: Iterable[Access]) -> Iterator[Access]:
        """Those of steps from `first` on, or of the steps before them that are late."""
        return (op for op in ops if first is None or op.value.step >= first - max(0, self._late(op.value)))


def load_distance(schedule: Schedule) -> int:
    """How many steps ahead of its own a round loads at most."""
    loads: Sequence[int] = [
        op.value.step for cluster in schedule.body for op in cluster.ops if isinstance(op, LoadDirect | LoadRegisters)
    ]
    return max(loads)


def flight(loop: PipelinedLoop) -> int:
    """Clocks between a load and its wait, for the load that has fewest, while the groups have their bursts."""
    count = len(loop.bursts)
    pace = 2 * sum(burst.work.cycles for burst in loop.bursts) // count
    found = []
    for source in loop.sources:
        for part in range(source.parts):
            reads = [read for f, read in loop.reads.items() if (f.tile, f.part) == (source.name, part)]
            ring = count * source.slots - (max(reads) - min(reads)) - 2
            found.append(count if source.puts else ring)
    return min(found) * pace
