"""Whether a schedule is well formed, and whether its tiles fit the target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpwave.backends.amd.arch import Target
from warpwave.backends.amd.gate import registers_of_a_lane
from warpwave.backends.amd.schedule.form import (
    Cluster,
    Compute,
    Held,
    LoadDirect,
    LoadRegisters,
    Op,
    Part,
    Pointer,
    Put,
    Read,
    RegisterTile,
    Schedule,
    SharedTile,
    Store,
    Wait,
)
from warpwave.backends.amd.schedule.pressure import most_live
from warpwave.backends.amd.schedule.problems import Problem, place
from warpwave.backends.amd.schedule.timeline import Event


def check_form(schedule: Schedule, target: Target) -> Iterator[Problem]:
    """Names that nothing has, parts, pieces and counts out of range."""
    groups = {group.name for group in schedule.groups}
    if schedule.period < 1 or schedule.tail < 0 or not schedule.epilogues:
        yield Problem("form", "", "", "a period, a tail or epilogues that cover nothing", "a period of at least 1")
    for tile in schedule.registers:
        yield from _check_pinned(tile)
    for phase, clusters in phases(schedule):
        for cluster in clusters:
            for name in set(cluster.only) - groups:
                yield Problem(
                    "form", "", f"{cluster.name} of {phase}", f"is only of group {name}", "a group of this name"
                )
            for index, op in enumerate(cluster.ops):
                for fault in _faults(schedule, target, op):
                    yield Problem("form", "", f"{cluster.name}[{index}] of {phase}", fault, "a resource that has it")


def check_capacity(schedule: Schedule, target: Target) -> Iterator[Problem]:
    """LDS, and the span of pinned registers."""
    lds = sum(tile.parts * tile.slots * tile.nbytes for tile in schedule.shared)
    if lds > target.lds_bytes:
        tiles = ", ".join(f"{t.name} {t.parts} x {t.slots} x {t.nbytes}" for t in schedule.shared)
        access = f"tiles of {lds} bytes ({tiles})"
        yield Problem("capacity", "", "", access, f"{lds - target.lds_bytes} of {target.lds_bytes} bytes of LDS")
    pinned = {number for tile in schedule.registers for number in tile.numbers}
    there = registers_of_a_lane(target, schedule.waves)
    vectors = {n for n in pinned if n < target.max_vgprs}
    span = sum(max(kind, default=-1) + 1 for kind in (vectors, {n - target.max_vgprs for n in pinned - vectors}))
    if span > there:
        access = f"registers pinned up to v{max(vectors, default=0)} and a{max(pinned - vectors, default=256) - 256}"
        yield Problem("capacity", "", "", access, f"{span - there} of the {there} registers a lane has")


def check_pressure(schedule: Schedule, target: Target, events: Sequence[Event], group: str) -> Iterator[Problem]:
    """The tiles that are needed at once, and the reserve, fit a lane's registers."""
    needed, names, event = most_live(schedule, events)
    there = registers_of_a_lane(target, schedule.waves)
    if needed + schedule.reserve > there:
        where = place(event.issued, group) if event else ""
        access = f"{', '.join(sorted(names))} need {needed} registers at once and {schedule.reserve} are for the rest"
        missing = f"{needed + schedule.reserve - there} of the {there} registers a lane has"
        yield Problem("capacity", "", where, access, missing)


def phases(schedule: Schedule) -> Iterator[tuple[str, tuple[Cluster, ...]]]:
    """All parts of a schedule, by name."""
    yield "prologue", schedule.prologue
    yield "body", schedule.body
    for left, clusters in schedule.epilogues.items():
        yield f"epilogue {left}", clusters


def _check_pinned(tile: RegisterTile) -> Iterator[Problem]:
    if tile.pieces < 1 or tile.count % tile.pieces:
        yield Problem("form", tile.name, "", f"{tile.count} registers in {tile.pieces} pieces", "pieces of one size")
    numbers = tile.numbers
    if tile.pinned and (len(numbers) != tile.count or len(set(numbers)) != tile.count):
        access = f"{tile.name} has {tile.count} registers and is pinned to {len(set(numbers))}"
        yield Problem("form", tile.name, "", access, "as many registers as the tile needs")
    if any(not 0 <= number < 512 for number in numbers):
        yield Problem("form", tile.name, "", f"{tile.name} is pinned beyond a255", "registers 0 to 511")


def _faults(schedule: Schedule, target: Target, op: Op) -> Iterator[str]:
    """What an op names that is not there."""
    shared = {tile.name: tile for tile in schedule.shared}
    registers = {tile.name: tile for tile in schedule.registers}
    if isinstance(op, LoadDirect | Pointer | Put | Read):
        yield from _part_faults(shared, op.value)
    if isinstance(op, LoadDirect | Pointer | Put) and op.value.tile in shared:
        pieces = (op.piece,) if isinstance(op, Pointer) else op.pieces
        yield from _piece_faults(pieces, op.value.tile, shared[op.value.tile].pieces)
    for held in _named(op):
        if held.register not in registers:
            yield f"uses the register tile {held.register}"
        else:
            yield from _piece_faults(held.pieces, held.register, registers[held.register].pieces)
    if isinstance(op, Wait):
        for counter, value, most in (("vm", op.vm, target.max_vmcnt), ("lgkm", op.lgkm, target.max_lgkmcnt)):
            if value is not None and not 0 <= value <= most:
                yield f"waits for {counter}cnt({value}), which holds 0 to {most}"
        yield from (f"ties the register tile {name}" for name in op.ties if name not in registers)
    if isinstance(op, Compute) and op.unit == "matrix" and op.passes not in target.hazards.matrix_to_vector:
        yield f"is a matrix op of {op.passes} passes"


def _part_faults(shared: dict[str, SharedTile], value: Part) -> Iterator[str]:
    if value.tile not in shared:
        yield f"uses the shared tile {value.tile}"
    elif not 0 <= value.part < shared[value.tile].parts:
        yield f"uses part {value.part} of {value.tile}, which has {shared[value.tile].parts}"


def _piece_faults(pieces: tuple[int, ...], name: str, count: int) -> Iterator[str]:
    if any(not 0 <= piece < count for piece in pieces):
        yield f"uses pieces {pieces} of {name}, which has {count}"


def _named(op: Op) -> Iterator[Held]:
    """The register tiles that an op names."""
    if isinstance(op, Compute):
        yield from (*op.reads, *op.writes)
    elif isinstance(op, Store):
        yield op.source
    elif isinstance(op, Put | Read | LoadRegisters):
        yield Held(op.register, None, op.pieces)
