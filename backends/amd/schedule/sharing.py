"""The proof for LDS: every read after the landing of its data for all waves, every overwrite after all reads.

Waves run in any order between two barriers, so an op of one wave is before an op of another only if a barrier
lies between them; and the end of a memory instruction is where its wave has waited for it, not where it is issued.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from warpwave.backends.amd.schedule.form import LoadDirect, Part, Put, Read, Schedule, SharedTile
from warpwave.backends.amd.schedule.problems import Problem, part_name, place
from warpwave.backends.amd.schedule.timeline import Event

Slot = tuple[str, int, int]  # tile, part, slot


@dataclass(eq=False)
class Access:
    """An op of a group that reads or writes a part in a slot; `pieces` are those written.

    Ops that differ in nothing but their pieces, and lie between the same barriers, are one access.
    """

    group: str
    event: Event
    value: Part
    pieces: set[int]

    @property
    def step(self) -> int | None:
        """The step whose data are meant."""
        return self.event.issued.step(self.value)

    def is_like(self, other: Access) -> bool:
        """Whether no order between waves could tell the two apart."""
        return (self.group, self.step, *_intervals(self.event)) == (other.group, other.step, *_intervals(other.event))

    @property
    def name(self) -> str:
        """Cluster, op and group."""
        return place(self.event.issued, self.group)


@dataclass
class SlotUse:
    """All accesses to one slot; writes by group, in the group's order."""

    reads: list[Access] = field(default_factory=list)
    writes: dict[str, list[Access]] = field(default_factory=lambda: defaultdict(list))


def check_sharing(schedule: Schedule, events: Mapping[str, Sequence[Event]]) -> Iterator[Problem]:
    """What is wrong with the accesses to LDS, given the ops of every group."""
    tiles = {tile.name: tile for tile in schedule.shared}
    uses, writers = _collect(schedule, tiles, events)
    for use in uses.values():
        for read in use.reads:
            loaders = writers[read.value.tile, read.value.part]
            if not loaders:
                access = f"reads {part_name(read.value, read.step)}"
                yield Problem("value", read.value.tile, read.name, f"{access}, which nobody loads", "a load of it")
            for group in sorted(loaders):
                yield from _check_read(schedule, tiles[read.value.tile], read, use.writes[group], group)


def _collect(
    schedule: Schedule, tiles: Mapping[str, SharedTile], events: Mapping[str, Sequence[Event]]
) -> tuple[dict[Slot, SlotUse], dict[tuple[str, int], set[str]]]:
    """The accesses of each slot, and the groups that bring shares of each part."""
    uses: dict[Slot, SlotUse] = defaultdict(SlotUse)
    writers: dict[tuple[str, int], set[str]] = defaultdict(set)
    for group, issued in events.items():
        for event in issued:
            op = event.op
            if not isinstance(op, LoadDirect | Put | Read):
                continue
            tile = tiles[op.value.tile]
            use = uses[tile.name, op.value.part, event.issued.slot(op.value, tile.slots)]
            pieces = () if isinstance(op, Read) else op.pieces or range(tile.pieces)
            into = use.reads if isinstance(op, Read) else use.writes[group]
            access = Access(group, event, op.value, set(pieces))
            if into and schedule.waves > 1 and into[-1].is_like(access):
                into[-1].pieces |= access.pieces
            else:
                into.append(access)
            if not isinstance(op, Read):
                writers[tile.name, op.value.part].add(group)
    return uses, writers


def _intervals(event: Event) -> tuple[int, int | None]:
    """Between which barriers an op is issued and finished."""
    return event.interval, event.done.interval if event.done else None


def _check_read(
    schedule: Schedule, tile: SharedTile, read: Access, writes: Sequence[Access], group: str
) -> Iterator[Problem]:
    """The share of one group: its last write before the read is of the right step, and none is concurrent."""
    landed: dict[int, Access] = {}
    for write in writes:
        if _is_before(schedule, write, read):
            landed.update(dict.fromkeys(write.pieces, write))
        elif not _is_before(schedule, read, write):
            yield _race(read, write)
            return
    for piece in range(tile.pieces):
        last = landed.get(piece)
        if last is None or last.step != read.step:
            holds = f"step {last.step}, by {last.name}" if last else "nothing yet"
            access = f"reads {part_name(read.value, read.step)} in a slot that holds {holds}"
            yield Problem("value", tile.name, read.name, access, f"a load of step {read.step} by group {group} before")
            return


def _is_before(schedule: Schedule, first: Access, then: Access) -> bool:
    """Whether `first` has finished, in all waves of its group, when any wave of the other's issues `then`."""
    done = first.event.done
    if done is None:
        return False
    if schedule.waves == 1:
        return done.index < then.event.index
    return done.interval < then.event.interval


def _race(read: Access, write: Access) -> Problem:
    """Not ordered: a landing that a read may miss, or an overwrite that may hit a read."""
    what, tile = part_name(read.value, read.step), read.value.tile
    if write.step == read.step:
        access = f"reads {what} although the load by {write.name} need not have landed"
        return Problem("landing", tile, read.name, access, _missing(write, "that load", "the read"))
    over = part_name(write.value, write.step)
    access = f"overwrites {what} with {over} although the read by {read.name} need not have finished"
    return Problem("overwrite", tile, write.name, access, _missing(read, "that read", "the overwrite"))


def _missing(first: Access, which: str, then: str) -> str:
    """The order that would help: a wait if nothing waits, else a barrier."""
    done = first.event.done
    wait = f"a wait for {first.event.counter}cnt after {which}"
    if done is None:
        return f"{wait}, and a barrier before {then}"
    return f"a barrier between the end of {which}, known only at {place(done.issued, first.group)}, and {then}"
