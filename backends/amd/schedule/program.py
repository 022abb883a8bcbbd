"""The ops of a schedule one after the other, as one group of waves issues them for a number of steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warpwave.backends.amd.schedule.form import Cluster, LoadDirect, LoadRegisters, Op, Part, Put, Schedule


@dataclass(frozen=True)
class Issued:
    """An op where it is issued: the `index`-th of its cluster; its steps count from `base`."""

    op: Op
    cluster: str
    index: int
    base: int
    phase: str

    def step(self, value: Part) -> int | None:
        """The step of the loop whose data are meant; None for what is there once."""
        return None if value.once else self.base + value.step

    def slot(self, value: Part, slots: int) -> int:
        """The slot that is meant."""
        step = value.step if value.slot_of is None else value.slot_of
        return 0 if value.once else (self.base + step) % slots


def unroll(schedule: Schedule, group: str, steps: int) -> Iterator[Issued]:
    """Everything that a wave of the group issues."""
    for _, issued in unroll_rounds(schedule, group, steps):
        yield from issued


def unroll_rounds(schedule: Schedule, group: str, steps: int) -> Iterator[tuple[int, list[Issued]]]:
    """The same in portions: prologue, each round, epilogue, each with its first step."""
    done = schedule.rounds(steps) * schedule.period
    yield 0, list(_issue(schedule.prologue, group, 0, steps, "prologue"))
    for base in range(0, done, schedule.period):
        yield base, list(_issue(schedule.body, group, base, steps, "body"))
    yield done, list(_issue(schedule.epilogues[steps - done], group, done, steps, "epilogue"))


def _issue(clusters: tuple[Cluster, ...], group: str, base: int, steps: int, phase: str) -> Iterator[Issued]:
    for cluster in clusters:
        if cluster.only and group not in cluster.only:
            continue
        for index, op in enumerate(cluster.ops):
            if not _is_left_out(op, base, steps):
                yield Issued(op, cluster.name, index, base, phase)


def _is_left_out(op: Op, base: int, steps: int) -> bool:
    if not isinstance(op, LoadDirect | LoadRegisters | Put) or not op.guarded:
        return False
    return not op.value.once and base + op.value.step >= steps
