"""When the memory instructions of a wave are known to have finished, and which barriers lie between its ops.

The counters count as the hardware does: each instruction adds one, those of a counter finish in the order in
which they were issued (CDNA3 and CDNA4 ISA guides, chapter 4: loads, stores and direct loads share vmcnt; no
scalar load, which could overtake, is part of a schedule). What only time makes likely is not known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from warpwave.backends.amd.schedule.form import (
    Barrier,
    Compute,
    Held,
    LoadDirect,
    LoadRegisters,
    Op,
    Put,
    Read,
    Schedule,
    Store,
    Wait,
)
from warpwave.backends.amd.schedule.program import Issued, unroll

MOST_COUNTED = 64  # what is older than so many is finished after any wait for its counter


@dataclass(eq=False)
class Event:
    """An issued op. `interval` counts the barriers before it; `done` is the op after which it is finished.

    `counter` is the counter that its instructions raise, if any.
    """

    issued: Issued
    index: int
    interval: int
    done: Event | None = None
    op: Op = field(init=False)
    counter: str = field(init=False)

    def __post_init__(self) -> None:
        self.op = self.issued.op
        self.counter = counts(self.op)[0]


def counts(op: Op) -> tuple[str, int]:
    """The counter that an op's instructions raise, and by how much."""
    if isinstance(op, LoadDirect | LoadRegisters | Store):
        return "vm", op.vm
    if isinstance(op, Read | Put):
        return "lgkm", op.lgkm
    return "", 0


def uses(op: Op) -> Iterator[Held]:
    """The register tiles whose content an op needs."""
    if isinstance(op, Compute):
        yield from op.reads
        if not op.fresh and op.unit == "matrix":
            yield from op.writes
    elif isinstance(op, Put):
        yield Held(op.register, op.value, op.pieces)
    elif isinstance(op, Store):
        yield op.source


@dataclass
class Timeline:
    """The ops of one wave, one by one."""

    events: list[Event] = field(default_factory=list)
    barriers: int = 0
    has_tracked: bool = False
    queues: dict[str, deque[tuple[Event, int]]] = field(default_factory=lambda: {"vm": deque(), "lgkm": deque()})

    def issue(self, issued: Issued) -> Event:
        """The next op; what it waits for is finished when it is there."""
        event = Event(issued, len(self.events), self.barriers)
        self.events.append(event)
        op = issued.op
        if self.has_tracked:
            self._wait_for_tracked(event)
        if isinstance(op, Wait):
            self._wait(event, "vm", op.vm)
            self._wait(event, "lgkm", op.lgkm)
        counter, count = counts(op)
        if count:
            self.queues[counter].append((event, count))
        self.has_tracked |= isinstance(op, Read | LoadRegisters) and op.tracked
        self.barriers += isinstance(op, Barrier)
        return event

    def in_flight(self) -> Iterator[Event]:
        """What is issued and not known to have finished."""
        for queue in self.queues.values():
            yield from (event for event, _ in queue)

    def signature(self, base: int, oldest: int) -> tuple[object, ...]:
        """The counters' state; steps count from `base`, and all that are more than `oldest` back are alike."""
        return tuple(
            (counter, e.issued.phase, e.issued.cluster, e.issued.index, max(e.issued.base - base, -oldest), left)
            for counter, queue in self.queues.items()
            for e, left in list(queue)[-MOST_COUNTED:]
        )

    def _wait(self, event: Event, counter: str, most: int | None) -> None:
        if most is None:
            return
        queue = self.queues[counter]
        over = sum(left for _, left in queue) - most
        while over > 0:
            first, left = queue.popleft()
            if left > over:
                queue.appendleft((first, left - over))
                return
            first.done = event
            over -= left

    def _wait_for_tracked(self, event: Event) -> None:
        """The compiler's own waits before `event`: for the loads it sees, and so for all that are older."""
        wanted = list(uses(event.op))
        for queue in self.queues.values() if wanted else ():
            needed = (i for i, (e, _) in enumerate(queue) if any(_is_tracked_load(e.op, held) for held in wanted))
            last = max(needed, default=-1)
            for _ in range(last + 1):
                queue.popleft()[0].done = event


def follow(schedule: Schedule, group: str, steps: int) -> Timeline:
    """All that a wave of the group does."""
    timeline = Timeline()
    for issued in unroll(schedule, group, steps):
        timeline.issue(issued)
    return timeline


def _is_tracked_load(op: Op, held: Held) -> bool:
    """Whether an op is a load, seen by the compiler, of some of what is used."""
    if not isinstance(op, Read | LoadRegisters) or not op.tracked or op.register != held.register:
        return False
    return not op.pieces or not held.pieces or bool(set(op.pieces) & set(held.pieces))
