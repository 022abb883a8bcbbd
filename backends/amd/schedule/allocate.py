"""Gives register tiles their registers: 256 vector registers and 256 accumulation registers of a lane.

Tiles that are never needed at once may share. Matrix and memory instructions take either kind of register, vector
instructions only vector registers (CDNA3 ISA guide 3.1); what only products write goes to accumulation registers,
which leaves the others to everything else. Pieces begin at even registers, as operands of several must.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from warpwave.backends.amd.arch import Target
from warpwave.backends.amd.gate import registers_of_a_lane
from warpwave.backends.amd.schedule.form import Compute, RegisterTile, Schedule
from warpwave.backends.amd.schedule.lengths import sufficient_lengths
from warpwave.backends.amd.schedule.pressure import live_tiles
from warpwave.backends.amd.schedule.timeline import follow
from warpwave.tiles.errors import Loc, ResourceError, TileValueError

Ranges = tuple[tuple[int, int], ...]


def allocate(schedule: Schedule, target: Target, by_hand: Mapping[str, Ranges] | None = None) -> Schedule:
    """The same schedule with every tile pinned; those `by_hand` where they are asked for.

    The first `reserve` vector registers stay free. ResourceError if there are too few.
    """
    given = by_hand or {}
    conflicts = _conflicts(schedule)
    for tile in schedule.registers:
        if tile.name in given:
            _expect_whole_pieces(schedule, tile, given[tile.name])
            _expect_free(schedule, tile, given, conflicts[tile.name])
    places: dict[str, Ranges] = dict(given)
    for tile in sorted(schedule.registers, key=lambda t: (t.name not in given, -t.count)):
        if tile.name in places:
            continue
        taken = {n for other in conflicts[tile.name] for n in _numbers(places.get(other, ()))}
        found = next((r for r in _candidates(schedule, target, tile) if taken.isdisjoint(_numbers(r))), None)
        if found is None:
            raise _does_not_fit(schedule, target, tile, places)
        places[tile.name] = found
    tiles = tuple(replace(tile, pinned=places[tile.name]) for tile in schedule.registers)
    return replace(schedule, registers=tiles)


def _expect_whole_pieces(schedule: Schedule, tile: RegisterTile, ranges: Ranges) -> None:
    """Instructions name the registers of a piece as a row that begins at an even one."""
    each = tile.count // tile.pieces * _pieces_together(schedule, tile)
    for first, last in ranges:
        if first % 2 or (last - first + 1) % each:
            raise TileValueError(
                f"{register(first)}-{register(last)} is no row of whole pieces of {tile.name}, {each} registers each",
                loc=schedule.loc,
                hint="begin at an even register, and give each run a multiple of that",
            )


def _pieces_together(schedule: Schedule, tile: RegisterTile) -> int:
    """Pieces of the tile that one instruction takes as a row."""
    used = (h for op in _computes(schedule) for h in (*op.reads, *op.writes) if h.register == tile.name)
    return max((len(h.pieces) for h in used), default=1) or tile.pieces


def _expect_free(schedule: Schedule, tile: RegisterTile, given: Mapping[str, Ranges], conflicts: set[str]) -> None:
    """As many registers as the tile has, none reserved, and none of another such tile that is needed with it."""
    numbers = _numbers(given[tile.name])
    if len(numbers) != tile.count or sum(last - first + 1 for first, last in given[tile.name]) != tile.count:
        why, hint = f"gives {tile.name} {len(numbers)} registers", f"it has {tile.count}"
    elif min(numbers) < schedule.reserve:
        why = f"gives {tile.name} registers among the first {schedule.reserve}"
        hint = f"those are for everything else: begin at v{schedule.reserve}"
    else:
        clash = next((n for n in given if n in conflicts and not numbers.isdisjoint(_numbers(given[n]))), None)
        if clash is None:
            return
        why, hint = f"gives {tile.name} and {clash} the same registers", "both are needed at once"
    raise TileValueError(f"pin= {why}", loc=schedule.loc, hint=hint)


def _conflicts(schedule: Schedule) -> dict[str, set[str]]:
    """For each tile those that are needed at some time when it is."""
    found: dict[str, set[str]] = {tile.name: set() for tile in schedule.registers}
    lengths = sufficient_lengths(schedule)
    steps = [count for count in lengths.steps if count <= lengths.settled][-schedule.period :]
    for group in schedule.groups:
        for count in steps:
            for together in set(live_tiles(schedule, follow(schedule, group.name, count).events)):
                for name in together:
                    found[name] |= together - {name}
    return found


def _candidates(schedule: Schedule, target: Target, tile: RegisterTile) -> Iterator[Ranges]:
    """Runs of registers that would do, the best kind first; the highest vector registers first."""
    vectors = range(target.max_vgprs - tile.count & ~1, schedule.reserve - 1, -2)
    high = target.max_vgprs + target.max_agprs - tile.count
    accumulation = range(target.max_vgprs, high + 1, 2)
    if registers_of_a_lane(target, schedule.waves) <= target.max_vgprs or tile.name in _vector_operands(schedule):
        order: tuple[range, ...] = (vectors,)
    else:
        order = (accumulation, vectors) if tile.name in _results(schedule) else (vectors, accumulation)
    for starts in order:
        yield from (((start, start + tile.count - 1),) for start in starts)


def _vector_operands(schedule: Schedule) -> set[str]:
    return {h.register for op in _computes(schedule) if op.unit != "matrix" for h in (*op.reads, *op.writes)}


def _results(schedule: Schedule) -> set[str]:
    return {h.register for op in _computes(schedule) if op.unit == "matrix" for h in op.writes}


def _computes(schedule: Schedule) -> Iterator[Compute]:
    for clusters in (schedule.prologue, schedule.body, *schedule.epilogues.values()):
        yield from (op for cluster in clusters for op in cluster.ops if isinstance(op, Compute))


def _numbers(ranges: Iterable[tuple[int, int]]) -> set[int]:
    return {n for first, last in ranges for n in range(first, last + 1)}


def _does_not_fit(
    schedule: Schedule, target: Target, tile: RegisterTile, places: Mapping[str, Ranges]
) -> ResourceError:
    listed = "\n".join(f"  {name}: {ranges_text(ranges)}" for name, ranges in places.items())
    return ResourceError(
        f"no {tile.count} registers in a row are left for {tile.name} on {target.name}; the first {schedule.reserve} "
        f"are for everything else, and there are already\n{listed}",
        loc=schedule.loc,
        hint="use smaller tiles, or drop schedule= or pin=",
    )


def ranges_text(ranges: Ranges) -> str:
    """Such as v64-v95."""
    return ", ".join(f"{register(first)}-{register(last)}" for first, last in ranges)


def parse_ranges(text: str, loc: Loc | None = None) -> dict[str, Ranges]:
    """What `pin=` says: NAME=a0-a63 for each tile, with + between the runs of one and a comma between tiles."""
    found: dict[str, Ranges] = {}
    for item in filter(None, text.replace(" ", "").split(",")):
        name, _, runs = item.partition("=")
        matches = [re.fullmatch(r"([va])(\d+)-\1(\d+)", run) for run in runs.split("+")]
        if not name or any(m is None or int(m[2]) > int(m[3]) or int(m[3]) > 255 for m in matches):
            hint = "write NAME=a0-a63, or NAME=v64-v79+v96-v111; several tiles with commas between"
            raise TileValueError(f"pin= has {item!r}, which is no range of registers", loc=loc, hint=hint)
        base = {"v": 0, "a": 256}
        found[name] = tuple((base[m[1]] + int(m[2]), base[m[1]] + int(m[3])) for m in matches if m)
    return found


def span(first: int, last: int) -> str:
    """The assembler's name of registers in a row, of one kind."""
    kind, base = ("v", 0) if first < 256 else ("a", 256)
    return f"{kind}[{first - base}:{last - base}]" if first != last else f"{kind}{first - base}"


def register(number: int) -> str:
    """The assembler's name of a register."""
    return span(number, number)
