"""What the checker finds, and the words it says it in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from warpwave.backends.amd.schedule.form import Part, Schedule
from warpwave.backends.amd.schedule.program import Issued
from warpwave.tiles.errors import TileError

Kind = Literal[
    "form", "capacity", "barriers", "landing", "overwrite", "value", "register", "tie", "hazard", "pointer", "end"
]
SHOWN = 5  # problems in one message


@dataclass(frozen=True)
class Problem:
    """One unsound access: who does what to which tile, and the order that is missing.

    `where` names cluster, op and phase; `first_steps` is the smallest number of steps at which it happens.
    """

    kind: Kind
    tile: str
    where: str
    access: str
    missing: str
    first_steps: int = 0

    def __str__(self) -> str:
        at = f"{self.where}: " if self.where else ""
        return f"{at}{self.access}; missing: {self.missing}"


class ScheduleError(TileError):
    """A schedule that is not proven sound; nothing is built from it."""

    def __init__(self, schedule: Schedule, problems: Sequence[Problem]) -> None:
        shown = [f"  {problem} (from {problem.first_steps} steps on)" for problem in problems[:SHOWN]]
        if len(problems) > SHOWN:
            shown.append(f"  and {len(problems) - SHOWN} more")
        super().__init__(
            "\n".join([f"schedule {schedule.name} for {schedule.target} is unsound:", *shown]),
            loc=schedule.loc,
            hint="choose another schedule=; one that Warpwave generated should never be refused: please report it",
        )
        self.problems = tuple(problems)


def place(issued: Issued, group: str) -> str:
    """Cluster, op and group of an access, the same for all rounds."""
    return f"{issued.cluster}[{issued.index}] of {issued.phase}, group {group}"


def part_name(value: Part, step: int | None) -> str:
    """A part of a tile, with the step it belongs to."""
    return f"{value.tile}[{value.part}]" + ("" if step is None else f" of step {step}")
