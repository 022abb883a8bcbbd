"""The proof that a schedule is sound for every number of steps that it covers, or what is wrong with it.

Per group of waves its ops are followed in order, counters as the hardware counts; between groups barriers are
numbered, and everything in LDS must be ordered by them. Nothing is inferred from latency.

Rounds of the body repeat: once the state that a round leaves is one that an earlier round left, longer loops
bring nothing that a shorter one does not have (`lengths`). All lengths up to there are checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from warpwave.backends.amd.arch import Target
from warpwave.backends.amd.schedule.capacity import check_capacity, check_form, check_pressure
from warpwave.backends.amd.schedule.form import LoadDirect, LoadRegisters, Put, Schedule
from warpwave.backends.amd.schedule.hazards import HazardCheck
from warpwave.backends.amd.schedule.lengths import sufficient_lengths
from warpwave.backends.amd.schedule.pointers import PointerCheck
from warpwave.backends.amd.schedule.problems import Problem, ScheduleError, part_name, place
from warpwave.backends.amd.schedule.program import unroll
from warpwave.backends.amd.schedule.registers import RegisterFile
from warpwave.backends.amd.schedule.sharing import check_sharing
from warpwave.backends.amd.schedule.timeline import Timeline, follow


def check_schedule(schedule: Schedule, target: Target) -> None:
    """ScheduleError unless the schedule is sound on this target."""
    problems = list(find_problems(schedule, target))
    if problems:
        raise ScheduleError(schedule, problems)


def find_problems(schedule: Schedule, target: Target) -> Iterator[Problem]:
    """What is wrong, each thing once, and the smallest number of steps at which it was found."""
    malformed = list(check_form(schedule, target))
    yield from malformed
    yield from check_capacity(schedule, target)
    if malformed:
        return
    seen: set[Problem] = set()
    lengths = sufficient_lengths(schedule)
    longest = max((n for n in lengths.steps if n <= lengths.settled), default=0)
    for steps in lengths.steps:
        own = list(check_waves(schedule, target, steps)) if steps <= lengths.settled else []
        pressed = list(check_registers(schedule, target, steps)) if longest - schedule.period < steps <= longest else []
        for problem in (*own, *pressed, *check_workgroup(schedule, steps)):
            same = replace(problem, access="", missing="")  # the texts name steps, which differ from round to round
            if same not in seen:
                seen.add(same)
                yield replace(problem, first_steps=steps)


def check_waves(schedule: Schedule, target: Target, steps: int) -> Iterator[Problem]:
    """What is wrong within a wave: what registers hold, and wait states."""
    for group in schedule.groups:
        timeline, registers = Timeline(), RegisterFile(schedule, group.name)
        hazards = HazardCheck(schedule, target.hazards, group.name)
        pointers = PointerCheck(schedule, target.hazards, group.name)
        for issued in unroll(schedule, group.name, steps):
            event = timeline.issue(issued)
            yield from registers.issue(event)
            yield from hazards.issue(event)
            yield from pointers.issue(event)
        yield from _left_over(timeline, group.name)


def check_registers(schedule: Schedule, target: Target, steps: int) -> Iterator[Problem]:
    """Whether what is needed at once fits."""
    for group in schedule.groups:
        yield from check_pressure(schedule, target, follow(schedule, group.name, steps).events, group.name)


def check_workgroup(schedule: Schedule, steps: int) -> Iterator[Problem]:
    """What is wrong between waves: barriers, and the order of accesses to LDS."""
    waves = {group.name: follow(schedule, group.name, steps) for group in schedule.groups}
    barriers = {group: timeline.barriers for group, timeline in waves.items()}
    if len(set(barriers.values())) > 1:
        counted = " and ".join(f"group {group} to {count}" for group, count in barriers.items())
        yield Problem("barriers", "", "", f"{counted} barriers come", "equally many barriers for all groups")
        return  # which barrier orders what is not known then
    yield from check_sharing(schedule, {group: timeline.events for group, timeline in waves.items()})


def _left_over(timeline: Timeline, group: str) -> Iterator[Problem]:
    """Loads that would land on whatever comes after the loop."""
    for event in timeline.in_flight():
        op = event.op
        if isinstance(op, LoadDirect | Put) or (isinstance(op, LoadRegisters) and not op.tracked):
            access = f"{part_name(op.value, event.issued.step(op.value))} is in flight at the end"
            yield Problem("end", op.value.tile, place(event.issued, group), access, f"a wait for {event.counter}cnt")
