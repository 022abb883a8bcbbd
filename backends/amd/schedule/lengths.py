"""How many steps a loop must have until longer ones bring nothing new.

What a round does depends on the state before it: the counters, the registers' content, and which slot comes
first. A state that comes back makes the rounds between repeat from there on. Two accesses conflict only if they
are near: a later pair on the same slot has at least as many barriers between. So a longer loop is sound if those
with one repetition, and on top as many rounds as accesses can be apart, are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm

from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.schedule.capacity import phases
from warpwave.backends.amd.schedule.form import Compute, LoadDirect, LoadRegisters, Op, Part, Put, Read, Schedule, Store
from warpwave.backends.amd.schedule.hazards import states_of
from warpwave.backends.amd.schedule.pointers import PointerCheck
from warpwave.backends.amd.schedule.program import unroll_rounds
from warpwave.backends.amd.schedule.registers import RegisterFile
from warpwave.backends.amd.schedule.timeline import Event, Timeline

MANY_ROUNDS = 64  # far beyond any state that comes back: those are fewer than slots times instructions in flight


@dataclass(frozen=True)
class Lengths:
    """Numbers of steps to check; up to `settled` of them for what a wave does by itself, too.

    Longer loops have no state of a wave's own, counters and registers, that shorter ones do not have.
    """

    steps: tuple[int, ...]
    settled: int


def sufficient_lengths(schedule: Schedule) -> Lengths:
    """All numbers of steps, of those that the schedule covers, that need to be checked."""
    first, last = step_range(schedule)
    slots = max((tile.slots for tile in schedule.shared), default=1)
    repeating, delay = _repetition(schedule, last - first)
    rounds = repeating + delay + -(-(last - first + slots) // schedule.period)
    steps = range(schedule.tail + (rounds + 1) * schedule.period)
    own = repeating + 1 + _rounds_of_hazards(schedule)
    covered = tuple(count for count in steps if schedule.covers(count))
    return Lengths(covered, schedule.tail + (own + 1) * schedule.period)


def _rounds_of_hazards(schedule: Schedule) -> int:
    """How many rounds a hazard may reach back beyond the last one."""
    states = sum(states_of(op) for cluster in schedule.body for op in cluster.ops)
    return TARGETS[schedule.target].hazards.reach // max(states, 1)


def step_range(schedule: Schedule) -> tuple[int, int]:
    """How far before and after the step it is issued in the data of an op may be."""
    steps = [
        value.step
        for _, clusters in phases(schedule)
        for cluster in clusters
        for op in cluster.ops
        for value in _values(op)
    ]
    return min(steps, default=0), max(steps, default=0)


def _repetition(schedule: Schedule, reach: int) -> tuple[int, int]:
    """Rounds until every group's state has come back, and for how many rounds an instruction is in flight."""
    steps = schedule.tail + (MANY_ROUNDS + reach + 1) * schedule.period
    found = [_repetition_of(schedule, group.name, steps, reach) for group in schedule.groups]
    return max(rounds for rounds, _ in found), max(delay for _, delay in found)


def _repetition_of(schedule: Schedule, group: str, steps: int, reach: int) -> tuple[int, int]:
    cycle = lcm(*(tile.slots for tile in schedule.shared))
    timeline, registers = Timeline(), RegisterFile(schedule, group)
    pointers = PointerCheck(schedule, TARGETS[schedule.target].hazards, group)
    round_of: dict[int, int] = {}
    seen: set[object] = set()
    for number, (base, portion) in enumerate(unroll_rounds(schedule, group, steps)):
        own = timeline.signature(base, reach + 1), registers.signature(base, reach + 1), pointers.at
        state = (base % cycle, *own)
        if (number > 0 and state in seen) or number > MANY_ROUNDS:
            return number, _delay(timeline.events, round_of)
        if number > 0:
            seen.add(state)
        for issued in portion:
            event = timeline.issue(issued)
            round_of[event.index] = number
            list(registers.issue(event))
            list(pointers.issue(event))
    raise AssertionError("the body runs at least MANY_ROUNDS times")


def _delay(events: list[Event], round_of: dict[int, int]) -> int:
    return max((round_of[e.done.index] - round_of[e.index] for e in events if e.done), default=0)


def _values(op: Op) -> Iterator[Part]:
    """What an op names."""
    if isinstance(op, LoadDirect | LoadRegisters | Put | Read):
        yield op.value
    elif isinstance(op, Compute):
        yield from (held.value for held in (*op.reads, *op.writes) if held.value)
    elif isinstance(op, Store) and op.source.value:
        yield op.source.value
