"""What is in the registers of a wave: which value, whether it is there yet, and who shares its registers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from warpwave.backends.amd.schedule.form import (
    Compute,
    Held,
    LoadRegisters,
    Part,
    Read,
    RegisterTile,
    Schedule,
    Wait,
)
from warpwave.backends.amd.schedule.problems import Problem, part_name, place
from warpwave.backends.amd.schedule.timeline import Event, uses

Cell = tuple[str, int]  # a piece of a tile, or ("", number) for a pinned register
Identity = tuple[str, int, int | None]  # tile, part, step


@dataclass(frozen=True)
class Content:
    """What a cell holds: a piece of a register tile, of which value, written by which op."""

    register: str
    piece: int
    value: Identity | None
    event: Event


@dataclass
class RegisterFile:
    """The registers of one wave of a group, op by op."""

    schedule: Schedule
    group: str
    content: dict[Cell, Content] = field(default_factory=dict)
    tied: dict[Cell, Event] = field(default_factory=dict)
    cells: dict[tuple[str, int], tuple[Cell, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self.tiles = {tile.name: tile for tile in self.schedule.registers}
        self.cells = {(t.name, p): tuple(cells_of(t, p)) for t in self.schedule.registers for p in range(t.pieces)}

    def issue(self, event: Event) -> Iterator[Problem]:
        """The next op: its uses, then what it writes."""
        op = event.op
        if isinstance(op, Wait):
            self._tie(op, event)
        for held in uses(op):
            yield from self._use(held, event)
        if isinstance(op, Read | LoadRegisters):
            yield from self._write(Held(op.register, op.value, op.pieces), event)
        if isinstance(op, Compute):
            for held in op.writes:
                yield from self._write(held, event)

    def signature(self, base: int, oldest: int) -> tuple[object, ...]:
        """The content; steps count from `base`, and all that are more than `oldest` back are alike."""
        return tuple(
            (cell, c.register, c.piece, _relative(c.value, base, oldest), c.event.done is None)
            for cell, c in sorted(self.content.items(), key=lambda item: item[0])
        )

    # -- one op ---------------------------------------------------------------------------------------

    def _tie(self, wait: Wait, event: Event) -> None:
        for name in wait.ties:
            for piece in range(self.tiles[name].pieces):
                for cell in self.cells[name, piece]:
                    self.tied[cell] = event

    def _use(self, held: Held, event: Event) -> Iterator[Problem]:
        wanted = _identity(held.value, event)
        for piece in held.pieces or range(self.tiles[held.register].pieces):
            for cell in self.cells[held.register, piece]:
                content = self.content.get(cell)
                if not self._is_right(content, held.register, piece, wanted, cell):
                    yield self._wrong_use(content, held, piece, cell, event)
                    return

    def _is_right(
        self, content: Content | None, register: str, piece: int, wanted: Identity | None, cell: Cell
    ) -> bool:
        """Whether a cell is sure to hold what a use wants; without content it was filled before the schedule begins."""
        if content is None:
            return wanted is None
        return (
            content.register == register
            and content.piece == piece
            and (content.event.done is not None or not content.event.counter)
            and (wanted is None or content.value == wanted)
            and not self._is_untied(content, cell)
        )

    def _wrong_use(self, content: Content | None, held: Held, piece: int, cell: Cell, event: Event) -> Problem:
        """What is wrong with it."""
        what = f"uses {held.register}"
        if held.value is not None:
            what += f" for {part_name(held.value, event.issued.step(held.value))}"
        if content is None:
            return self._problem("value", held, event, f"{what}, which nothing has filled", "a read of it before this")
        since = self._place(content.event)
        if (content.register, content.piece) != (held.register, piece):
            lost = f"{what}, but {_cell_name(cell)} holds {content.register} since {since}"
            return self._problem("register", held, event, lost, "one live value for each register")
        if content.event.done is None and content.event.counter:
            early = f"{what} before the {_verb(content.event)} by {since} has finished"
            return self._problem("register", held, event, early, f"a wait for {content.event.counter}cnt between them")
        if self._is_untied(content, cell):
            loose = f"{what}, but no wait since {since} ties {held.register}"
            return self._problem("tie", held, event, loose, f"{held.register} as an operand of the wait")
        stale = f"{what}, which holds {_describe(content.value)} from {since}"
        return self._problem("value", held, event, stale, "the read of that step before this use")

    def _is_untied(self, content: Content, cell: Cell) -> bool:
        """Whether a compiler could use the cell before the wait that fills it."""
        op, done = content.event.op, content.event.done
        if self.schedule.emission != "source" or not isinstance(op, Read | LoadRegisters) or op.tracked or not done:
            return False
        tie = self.tied.get(cell)
        return tie is None or tie.index < done.index

    def _write(self, held: Held, event: Event) -> Iterator[Problem]:
        value = _identity(held.value, event)
        for piece in held.pieces or range(self.tiles[held.register].pieces):
            for cell in self.cells[held.register, piece]:
                old = self.content.get(cell)
                if old is not None and _collides(old.event, event):
                    yield self._problem(
                        "register",
                        held,
                        event,
                        f"writes {held.register} while the {_verb(old.event)} by {self._place(old.event)} into "
                        f"{_cell_name(cell)} is in flight",
                        f"a wait for {old.event.counter}cnt between them",
                    )
                    return
                self.content[cell] = Content(held.register, piece, value, event)

    def _problem(self, kind: str, held: Held, event: Event, access: str, missing: str) -> Problem:
        return Problem(kind, held.register, self._place(event), access, missing)  # type: ignore[arg-type]

    def _place(self, event: Event) -> str:
        return place(event.issued, self.group)


def cells_of(tile: RegisterTile, piece: int) -> Iterator[Cell]:
    """The pinned registers of a piece, or one cell that stands for it."""
    if not tile.pinned:
        yield tile.name, piece
        return
    each = tile.count // tile.pieces
    yield from (("", number) for number in tile.numbers[piece * each : (piece + 1) * each])


def _collides(old: Event, new: Event) -> bool:
    """Whether a load that is in flight could land on what a later op writes; loads of one counter land in order."""
    return bool(old.counter) and old.done is None and new.counter != old.counter


def _identity(value: Part | None, event: Event) -> Identity | None:
    return None if value is None else (value.tile, value.part, event.issued.step(value))


def _relative(value: Identity | None, base: int, oldest: int) -> Identity | None:
    if value is None or value[2] is None:
        return value
    return (*value[:2], max(value[2] - base, -oldest))


def _describe(value: Identity | None) -> str:
    return "no step's value" if value is None else part_name(Part(value[0], value[1]), value[2])


def _cell_name(cell: Cell) -> str:
    name, number = cell
    if name:
        return name
    return f"v{number}" if number < 256 else f"a{number - 256}"


def _verb(event: Event) -> str:
    return "read" if isinstance(event.op, Read) else "load"
