"""M0: direct loads write where it points, so each must find it at its own part, slot and piece.

Scalar instructions write M0, and a load must not be the next instruction after that (CDNA3 and CDNA4 ISA guides).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from warpwave.backends.amd.arch import Hazards
from warpwave.backends.amd.schedule.form import LoadDirect, Part, Pointer, Schedule
from warpwave.backends.amd.schedule.hazards import states_of
from warpwave.backends.amd.schedule.problems import Problem, part_name, place
from warpwave.backends.amd.schedule.timeline import Event

Target = tuple[str, int, int, int]  # tile, part, slot, piece


@dataclass
class PointerCheck:
    """Where M0 of a group's waves points, op by op; nothing is relied on before the first `Pointer`."""

    schedule: Schedule
    hazards: Hazards
    group: str
    since: Event | None = None
    states: int = 0  # issued since then
    slots: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.slots = {tile.name: tile.slots for tile in self.schedule.shared}

    def issue(self, event: Event) -> Iterator[Problem]:
        """The next op."""
        op = event.op
        if isinstance(op, Pointer):
            self.since, self.states = event, 0
            return
        if isinstance(op, LoadDirect) and op.pointer is not None:
            yield from self._check(op, op.pointer, event)
        self.states += states_of(op)

    @property
    def at(self) -> Target | None:
        """Where M0 points."""
        if self.since is None or not isinstance(self.since.op, Pointer):
            return None
        return self._target(self.since.op.value, self.since.op.piece, self.since)

    def _target(self, value: Part, piece: int, event: Event) -> Target:
        return value.tile, value.part, event.issued.slot(value, self.slots[value.tile]), piece

    def _check(self, op: LoadDirect, piece: int, event: Event) -> Iterator[Problem]:
        where, value = place(event.issued, self.group), op.value
        loads = f"loads {part_name(value, event.issued.step(value))}"
        if self.since is None or self.at != self._target(value, piece, event):
            points = self._named() if self.since else "where nothing has set it"
            access = f"{loads} by M0, which points {points}"
            yield Problem("pointer", value.tile, where, access, f"M0 set to piece {piece} of that part before the load")
        elif self.states < self.hazards.pointer_to_load:
            access = f"{loads} {self.states} wait states after M0 is set by {place(self.since.issued, self.group)}"
            missing = f"{self.hazards.pointer_to_load - self.states} wait states between them"
            yield Problem("hazard", value.tile, where, access, missing)

    def _named(self) -> str:
        assert self.since is not None
        op = self.since.op
        assert isinstance(op, Pointer)
        step = self.since.issued.step(op.value)
        return f"to piece {op.piece} of {part_name(op.value, step)} since {place(self.since.issued, self.group)}"
