"""How many registers of a lane hold something that is still needed, op by op."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpwave.backends.amd.schedule.form import Compute, LoadRegisters, Read, RegisterTile, Schedule
from warpwave.backends.amd.schedule.registers import Cell, cells_of
from warpwave.backends.amd.schedule.timeline import Event, uses


def most_live(schedule: Schedule, events: Sequence[Event]) -> tuple[int, frozenset[str], Event | None]:
    """The most registers that tiles need at once, the tiles that do, and where.

    Pinned registers are always taken. What no op reads from a step, such as accumulators, is needed to the end.
    """
    size = {tile.name: tile.count // tile.pieces for tile in schedule.registers}
    taken = len({number for tile in schedule.registers for number in tile.numbers})
    best: tuple[int, frozenset[str], Event | None] = taken, frozenset(), None
    for event, live in _live(schedule, events):
        needed = taken + sum(size[name] for name, _ in live)
        if needed > best[0]:
            best = needed, _names(live), event
    return best


def live_tiles(schedule: Schedule, events: Sequence[Event]) -> Iterator[frozenset[str]]:
    """The tiles without fixed registers that are needed at once, op by op."""
    return (_names(live) for _, live in _live(schedule, events))


def _live(schedule: Schedule, events: Sequence[Event]) -> Iterator[tuple[Event, set[Cell]]]:
    """From the last op to the first: what is needed after it, and what it writes."""
    tiles = {tile.name: tile for tile in schedule.registers}
    live = {cell for tile in _results(schedule, events) for cell in _cells(tile)}
    for event in reversed(events):
        written = set(_written(tiles, event))
        yield event, live | written
        live = (live - written) | set(_used(tiles, event))


def _results(schedule: Schedule, events: Sequence[Event]) -> Iterator[RegisterTile]:
    """Tiles whose content belongs to no step."""
    kept = {h.register for e in events if isinstance(e.op, Compute) for h in e.op.writes if h.value is None}
    return (tile for tile in schedule.registers if tile.name in kept)


def _written(tiles: dict[str, RegisterTile], event: Event) -> Iterator[Cell]:
    op = event.op
    if isinstance(op, Compute):
        for held in op.writes:
            yield from _cells(tiles[held.register], held.pieces)
    elif isinstance(op, Read | LoadRegisters):
        yield from _cells(tiles[op.register], op.pieces)


def _used(tiles: dict[str, RegisterTile], event: Event) -> Iterator[Cell]:
    for held in uses(event.op):
        yield from _cells(tiles[held.register], held.pieces)


def _cells(tile: RegisterTile, pieces: tuple[int, ...] = ()) -> Iterator[Cell]:
    """The cells that are not pinned."""
    for piece in pieces or range(tile.pieces):
        yield from (cell for cell in cells_of(tile, piece) if cell[0])


def _names(live: set[Cell]) -> frozenset[str]:
    return frozenset(name for name, _ in live)
