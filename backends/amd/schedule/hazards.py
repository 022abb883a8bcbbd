"""Wait states between dependent instructions, where nobody but the schedule takes care of them.

A wait state is an issued instruction, or one count of s_nop; what waits and barriers take is not relied on.
Distances count from the last instruction of the first op to the first of the second.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from warpwave.backends.amd.arch import Hazards
from warpwave.backends.amd.schedule.form import (
    Compute,
    Held,
    Idle,
    LoadDirect,
    LoadRegisters,
    Op,
    Pointer,
    Put,
    Read,
    RegisterTile,
    Scalar,
    Schedule,
    Store,
)
from warpwave.backends.amd.schedule.problems import Problem, place
from warpwave.backends.amd.schedule.registers import Cell, cells_of
from warpwave.backends.amd.schedule.timeline import Event, counts


@dataclass
class HazardCheck:
    """The last instructions that a wave of a group has issued, as far back as any hazard reaches."""

    schedule: Schedule
    hazards: Hazards
    group: str
    states: int = 0  # issued so far
    recent: list[tuple[Event, frozenset[Cell], int]] = field(default_factory=list)  # with results, and states then
    known: dict[tuple[str, tuple[int, ...]], frozenset[Cell]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tiles = {tile.name: tile for tile in self.schedule.registers}
        self.reach = self.hazards.reach

    def issue(self, event: Event) -> Iterator[Problem]:
        """The next op."""
        if self.schedule.emission == "source":
            return  # the compiler inserts what is needed
        touched = self._all_cells(_touches(event.op))
        for before, written, then in self.recent:
            if not written.isdisjoint(touched):
                yield from self._check(before, event, self.states - then)
        self.states += states_of(event.op)
        while self.recent and self.states - self.recent[0][2] >= self.reach:
            self.recent.pop(0)
        if isinstance(event.op, Compute):
            self.recent.append((event, self._all_cells(event.op.writes), self.states))

    def _all_cells(self, tiles: tuple[Held, ...]) -> frozenset[Cell]:
        return frozenset().union(*map(self._cells, tiles)) if len(tiles) != 1 else self._cells(tiles[0])

    def _check(self, before: Event, event: Event, between: int) -> Iterator[Problem]:
        first = before.op
        assert isinstance(first, Compute)
        for written in first.writes:
            needed, verb = self._needed(first, written, event.op)
            if needed > between:
                where = place(before.issued, self.group)
                access = f"{verb} {written.register}, written by {where}, after {between} wait states of {needed}"
                missing = f"{needed - between} wait states between them"
                yield Problem("hazard", written.register, place(event.issued, self.group), access, missing)

    def _needed(self, first: Compute, written: Held, op: Op) -> tuple[int, str]:
        """Wait states from the end of `first` for what `op` does with the tile written."""
        needed: list[tuple[int, str]] = [(0, "uses")]
        if isinstance(op, Compute):
            needed += [(self._read(first, op), "reads") for held in op.reads if self._overlap(written, held)]
            needed += [(self._write(first, written, op, h), "writes") for h in op.writes if self._overlap(written, h)]
        elif isinstance(op, Put | Store):
            held = op.source if isinstance(op, Store) else Held(op.register, None, op.pieces)
            if first.unit == "matrix" and self._overlap(written, held):
                needed.append((self.hazards.matrix_to_vector[first.passes], "reads"))
        return max(needed)

    def _read(self, first: Compute, op: Compute) -> int:
        """`op` reads as a factor, or as a vector operand, what `first` wrote."""
        if first.unit == "matrix":
            table = self.hazards.matrix_to_factor if op.unit == "matrix" else self.hazards.matrix_to_vector
            return table[first.passes]
        if op.unit == "matrix":
            return self.hazards.vector_to_matrix
        return self.hazards.transcendental_to_vector if (first.unit, op.unit) == ("transcendental", "vector") else 0

    def _write(self, first: Compute, written: Held, op: Compute, held: Held) -> int:
        """`op` writes, or adds to, what `first` wrote."""
        if first.unit != "matrix":
            return self.hazards.vector_to_matrix if op.unit == "matrix" and not op.fresh else 0
        if op.unit != "matrix":
            return self.hazards.matrix_to_vector[first.passes]
        same = self._cells(written) == self._cells(held) and first.passes == op.passes
        return (self.hazards.matrix_to_same if same else self.hazards.matrix_to_overlap)[first.passes]

    def _overlap(self, one: Held, other: Held) -> bool:
        return bool(self._cells(one) & self._cells(other))

    def _cells(self, held: Held) -> frozenset[Cell]:
        key = held.register, held.pieces
        if key not in self.known:
            tile: RegisterTile = self.tiles[held.register]
            pieces = held.pieces or range(tile.pieces)
            self.known[key] = frozenset(cell for piece in pieces for cell in cells_of(tile, piece))
        return self.known[key]


def _touches(op: Op) -> tuple[Held, ...]:
    """What a hazard may be about: registers that an op reads at its issue, or computes."""
    if isinstance(op, Compute):
        return (*op.reads, *op.writes)
    if isinstance(op, Store):
        return (op.source,)
    return (Held(op.register, None, op.pieces),) if isinstance(op, Put) else ()


def states_of(op: Op) -> int:
    """Wait states that an op is sure to be."""
    if isinstance(op, Compute | Scalar):
        return op.instructions
    if isinstance(op, Idle):
        return op.states
    if isinstance(op, Pointer):
        return 1
    if isinstance(op, LoadDirect | LoadRegisters | Store | Read | Put):
        return counts(op)[1]
    return 0
