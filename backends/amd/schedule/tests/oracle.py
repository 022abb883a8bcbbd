"""Runs a schedule wave by wave with values, as adversarial hardware would; by another way than the checker.

Each group is two waves (what races, races between two), which run freely between barriers. A memory instruction
in flight may have happened or not: what a place may hold is a set. A schedule is sound here if every use gets
the one value that it wants, whatever order waves run in and whatever memory does.

Waves are tried one after the other in both orders, which puts each before and after each other in every stretch
between barriers, and then at random.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

from warpwave.backends.amd.schedule.form import (
    Barrier,
    Compute,
    LoadDirect,
    LoadRegisters,
    Part,
    Pointer,
    Put,
    Read,
    Schedule,
    Store,
    Wait,
)
from warpwave.backends.amd.schedule.program import Issued, unroll

EMPTY = (("nothing",), 0)
FLYING = ("?", "in flight")


class Wrong(Exception):
    """A use that may get something else than it wants."""


@dataclass(eq=False)
class Flight:
    """A memory instruction between its issue and its end.

    `fills` are registers, each with what it becomes part of; `writes` are places in LDS; `may_see` is, for each
    place that is read, what may be there at some time while the read is in flight.
    """

    counter: str
    left: int
    op: object
    value: object = None
    fills: dict[tuple, tuple] = field(default_factory=dict)
    writes: tuple = ()
    may_see: dict[tuple, set] = field(default_factory=dict)


@dataclass
class Wave:
    """A wave: its program, its counters in order, and its registers: what each cell may hold."""

    group: str
    number: int
    program: list[Issued]
    at: int = 0
    pointer: tuple = ()  # M0: tile, part, slot and piece
    flights: dict[str, deque] = field(default_factory=lambda: {"vm": deque(), "lgkm": deque()})
    cells: dict[tuple, set] = field(default_factory=dict)

    @property
    def is_at_barrier(self) -> bool:
        return self.at < len(self.program) and isinstance(self.program[self.at].op, Barrier)

    @property
    def is_done(self) -> bool:
        return self.at >= len(self.program)


class Machine:
    """All waves of a workgroup and their LDS."""

    def __init__(self, schedule: Schedule, steps: int):
        self.shared = {tile.name: tile for tile in schedule.shared}
        self.registers = {tile.name: tile for tile in schedule.registers}
        each = {g.name: min(g.waves, 2) for g in schedule.groups}
        self.waves = [
            Wave(g.name, n, list(unroll(schedule, g.name, steps))) for g in schedule.groups for n in range(each[g.name])
        ]
        self.lds: dict[tuple, set] = {}  # (tile, part, slot, piece, wave that brings the share): what may be there
        self.bringers = self._bringers()
        self.in_lds: list[Flight] = []  # reads and writes of LDS in flight, of all waves

    def _bringers(self) -> dict[tuple, set]:
        found: dict[tuple, set] = {}
        for n, wave in enumerate(self.waves):
            for issued in wave.program:
                if isinstance(issued.op, LoadDirect | Put):
                    found.setdefault((issued.op.value.tile, issued.op.value.part), set()).add(n)
        return found

    def run(self, choose) -> None:
        """Until all have ended; `choose` picks one of the waves that can go on."""
        while True:
            ready = [w for w in self.waves if not w.is_done and not w.is_at_barrier]
            if ready:
                self.step(choose(ready))
                continue
            waiting = [w for w in self.waves if w.is_at_barrier]
            if not waiting:
                break
            if len(waiting) < len(self.waves):
                raise Wrong("some waves have ended, others are at a barrier")
            for wave in waiting:
                wave.at += 1
        for wave in self.waves:
            for flight in [*wave.flights["vm"], *wave.flights["lgkm"]]:
                if isinstance(flight.op, LoadDirect | Put) or (
                    isinstance(flight.op, LoadRegisters) and not flight.op.tracked
                ):
                    raise Wrong("in flight at the end")

    # -- one op ---------------------------------------------------------------------------------------

    def step(self, wave: Wave) -> None:
        issued = wave.program[wave.at]
        wave.at += 1
        op = issued.op
        if isinstance(op, Wait):
            for counter, most in (("vm", op.vm), ("lgkm", op.lgkm)):
                self.wait(wave, counter, most)
        elif isinstance(op, Pointer):
            slot = issued.slot(op.value, self.shared[op.value.tile].slots)
            wave.pointer = op.value.tile, op.value.part, slot, op.piece
        elif isinstance(op, LoadDirect):
            self.write_lds(wave, issued, "vm", op.vm)
        elif isinstance(op, Put):
            self.use(wave, op.register, op.pieces, name(issued, op.value))
            self.write_lds(wave, issued, "lgkm", op.lgkm)
        elif isinstance(op, Read):
            self.read_lds(wave, issued)
        elif isinstance(op, LoadRegisters):
            fills = self.cells(op.register, op.pieces)
            self.fill(wave, Flight("vm", op.vm, op, name(issued, op.value), fills))
        elif isinstance(op, Store):
            self.use(wave, op.source.register, op.source.pieces, op.source.value and name(issued, op.source.value))
            wave.flights["vm"].append(Flight("vm", op.vm, op))
        elif isinstance(op, Compute):
            self.compute(wave, issued)

    def compute(self, wave: Wave, issued: Issued) -> None:
        op = issued.op
        for held in op.reads if op.fresh or op.unit != "matrix" else (*op.reads, *op.writes):
            self.use(wave, held.register, held.pieces, held.value and name(issued, held.value))
        for held in op.writes:
            value = ("result", held.register) if held.value is None else name(issued, held.value)
            for cell, owner in self.cells(held.register, held.pieces).items():
                if any(cell in flight.fills for flight in inbound(wave)):
                    raise Wrong(f"{op.name} writes {cell} under a load")
                wave.cells[cell] = {(owner, value)}

    def use(self, wave: Wave, register: str, pieces: tuple, wanted: object) -> None:
        """Every cell holds the tile, and the value if one is wanted."""
        cells = self.cells(register, pieces)
        for counter, queue in wave.flights.items():  # the compiler's own waits
            for i in reversed(range(len(queue))):
                if getattr(queue[i].op, "tracked", False) and cells.keys() & queue[i].fills.keys():
                    self.wait(wave, counter, sum(f.left for f in list(queue)[i + 1 :]))
                    break
        for cell, owner in cells.items():
            may = wave.cells.get(cell)
            if may is None:
                if wanted is not None:
                    raise Wrong(f"{register} is empty")
                continue
            if len(may) > 1 or any(o != owner or (wanted is not None and v != wanted) for o, v in may):
                raise Wrong(f"{register} may hold {may}, not {wanted}")

    def cells(self, register: str, pieces: tuple) -> dict[tuple, tuple]:
        """The registers of a tile, each with what it is of the tile."""
        tile = self.registers[register]
        numbers, each = tile.numbers, tile.count // tile.pieces
        found = {}
        for piece in pieces or range(tile.pieces):
            names = [("r", n) for n in numbers[piece * each : (piece + 1) * each]] or [(register, piece)]
            found.update(dict.fromkeys(names, (register, piece)))
        return found

    def fill(self, wave: Wave, flight: Flight) -> None:
        """A load into registers: until its end they may hold anything."""
        for other in inbound(wave):
            if other.counter != flight.counter and other.fills.keys() & flight.fills.keys():
                raise Wrong("two loads into one register, in no order")
        for cell, owner in flight.fills.items():
            wave.cells[cell] = {(owner, flight.value), FLYING}
        wave.flights[flight.counter].append(flight)

    def write_lds(self, wave: Wave, issued: Issued, counter: str, count: int) -> None:
        """From now on readers may see the new, which no two instructions have alike."""
        op, tile = issued.op, self.shared[issued.op.value.tile]
        to, first = (tile.name, op.value.part, issued.slot(op.value, tile.slots)), 0
        if isinstance(op, LoadDirect) and op.pointer is not None:  # wherever M0 points
            if not wave.pointer:
                raise Wrong("M0 is whatever it was")
            *to, piece = wave.pointer
            first = piece - op.pointer
        me, pieces = self.waves.index(wave), op.pieces or range(tile.pieces)
        places = tuple((*to, first + piece, me) for piece in pieces)
        flight = Flight(counter, count, op, (name(issued, op.value), wave.at), writes=places)
        wave.flights[counter].append(flight)
        self.in_lds.append(flight)
        for place in places:
            self.lds.setdefault(place, {EMPTY}).add(flight.value)
            for reading in self.in_lds:
                if place in reading.may_see:
                    reading.may_see[place].add(flight.value)
                    judge(reading)

    def read_lds(self, wave: Wave, issued: Issued) -> None:
        """All that may be there now, and what comes until its end."""
        op, tile = issued.op, self.shared[issued.op.value.tile]
        part, slot = op.value.part, issued.slot(op.value, tile.slots)
        bringers = self.bringers.get((tile.name, part), ())
        if not bringers:
            raise Wrong("nobody brings it")
        places = [(tile.name, part, slot, piece, n) for piece in range(tile.pieces) for n in bringers]
        flight = Flight("lgkm", op.lgkm, op, name(issued, op.value), self.cells(op.register, op.pieces))
        flight.may_see = {place: set(self.lds.get(place, {EMPTY})) for place in places}
        judge(flight)
        self.in_lds.append(flight)
        self.fill(wave, flight)

    # -- the end of what is in flight -----------------------------------------------------------------

    def wait(self, wave: Wave, counter: str, most: int | None) -> None:
        queue = wave.flights[counter]
        while most is not None and sum(f.left for f in queue) > most:
            first = queue[0]
            if sum(f.left for f in queue) - first.left < most:
                first.left = most - sum(f.left for f in list(queue)[1:])
                return
            self.end(wave, queue.popleft())

    def end(self, wave: Wave, flight: Flight) -> None:
        """It has happened."""
        if flight in self.in_lds:
            self.in_lds.remove(flight)
        for place in flight.writes:
            self.lds[place] = {flight.value} | {f.value for f in self.in_lds if place in f.writes}
        for cell, owner in flight.fills.items():
            if not any(cell in other.fills for other in inbound(wave)):
                wave.cells[cell] = {(owner, flight.value)}


def judge(flight: Flight) -> None:
    """A read sees one value in each place, and the one it wants."""
    for place, values in flight.may_see.items():
        if {value for value, _ in values} != {flight.value} or len(values) != 1:
            raise Wrong(f"a read of {flight.value} may see {values} in {place}")


def inbound(wave: Wave) -> list[Flight]:
    """Loads into registers that are in flight."""
    return [flight for queue in wave.flights.values() for flight in queue if flight.fills]


def name(issued: Issued, value: Part) -> tuple:
    return value.tile, value.part, issued.step(value)


def fault(schedule: Schedule, steps: int, *, tries: int = 2, seed: int = 0) -> str | None:
    """What goes wrong in some order of waves, or None."""
    chance = random.Random(seed)
    orders = [lambda ready: ready[0], lambda ready: ready[-1]]
    orders += [chance.choice] * tries
    for choose in orders:
        try:
            Machine(schedule, steps).run(choose)
        except Wrong as wrong:
            return str(wrong)
    return None


def first_fault(schedule: Schedule, most: int, tries: int = 2) -> tuple[int, str] | None:
    """The smallest number of steps, up to `most`, at which something goes wrong."""
    for steps in range(most + 1):
        if schedule.covers(steps) and (found := fault(schedule, steps, tries=tries)):
            return steps, found
    return None
