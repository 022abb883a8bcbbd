"""A schedule as data: what each group of waves issues, in order, for one pipelined loop.

Steps are those of the source's loop. Whatever an op names it names relative to a first step: of the loop in the
prologue, of the round in the body, of what the rounds left over in an epilogue. Shared tiles are rings: the data
of step s lie in slot s modulo the slots. Counts of instructions are those that every wave
issues at least: more of them can only make a wait stricter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from warpwave.tiles.errors import Loc

# -- resources ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SharedTile:
    """A tile in LDS: `parts` that are loaded and read one by one, each there `slots` times.

    `nbytes` is what one part takes in one slot. A part is loaded whole, or in `pieces` of their own.
    """

    name: str
    parts: int
    slots: int
    nbytes: int
    pieces: int = 1


@dataclass(frozen=True)
class RegisterTile:
    """A tile in registers: `count` of a lane, filled and used whole or in `pieces`.

    `pinned` are the registers themselves, first and last of each run: 0-255 are v0-v255, 256-511 a0-a255. A tile
    with several pieces has its registers dealt to them in order, the same number to each.
    """

    name: str
    count: int
    pieces: int = 1
    pinned: tuple[tuple[int, int], ...] = ()

    @property
    def numbers(self) -> tuple[int, ...]:
        """The pinned registers, in the order in which pieces get them."""
        return tuple(n for first, last in self.pinned for n in range(first, last + 1))


@dataclass(frozen=True)
class Group:
    """Waves that run the same clusters at the same time."""

    name: str
    waves: int


@dataclass(frozen=True)
class Part:
    """What a place holds: part `part` of a tile, of the step `step`.

    In LDS it lies in the slot of that step, or in the slot of step `slot_of` where that is given. What is there
    `once` is the same for the whole loop, and lies in slot 0.
    """

    tile: str
    part: int = 0
    step: int = 0
    slot_of: int | None = None
    once: bool = False


@dataclass(frozen=True)
class Held:
    """A register tile, or some of its pieces, and what it must hold when it is used.

    Without a `value` its content has no step: an accumulator, a constant.
    """

    register: str
    value: Part | None = None
    pieces: tuple[int, ...] = ()


# -- what a wave issues -------------------------------------------------------------------------------


@dataclass(frozen=True)
class LoadDirect:
    """Global memory straight to LDS, in `vm` instructions; all waves of the groups that issue it bring a share.

    With `guarded` it is left out for steps past the last one. With a `pointer` it writes where M0 points, which must
    then be where a `Pointer` to that piece of the part puts it; the distance to its own pieces is the instruction's
    offset. Without one M0 is the compiler's.
    """

    value: Part
    vm: int
    pieces: tuple[int, ...] = ()
    guarded: bool = False
    pointer: int | None = None


@dataclass(frozen=True)
class Pointer:
    """M0 set to a piece of a part's slot in LDS."""

    value: Part
    piece: int = 0


@dataclass(frozen=True)
class LoadRegisters:
    """Global memory to registers, in `vm` instructions.

    With `tracked` the compiler sees it, and waits itself before the first use.
    """

    value: Part
    register: str
    vm: int
    pieces: tuple[int, ...] = ()
    guarded: bool = False
    tracked: bool = False


@dataclass(frozen=True)
class Put:
    """Registers to LDS, in `lgkm` instructions; all waves of the groups that issue it bring a share.

    `pieces` are those of both tiles, which then have equally many.
    """

    register: str
    value: Part
    lgkm: int
    pieces: tuple[int, ...] = ()
    guarded: bool = False


@dataclass(frozen=True)
class Read:
    """A part in LDS to registers, in `lgkm` instructions; `pieces` are those of the register tile that it fills.

    With `tracked` the compiler sees it, and waits itself before the first use.
    """

    value: Part
    register: str
    lgkm: int
    pieces: tuple[int, ...] = ()
    tracked: bool = False


@dataclass(frozen=True)
class Store:
    """Registers to global memory, in `vm` instructions."""

    source: Held
    vm: int


Unit = Literal["matrix", "vector", "transcendental"]


@dataclass(frozen=True)
class Compute:
    """Arithmetic on registers, in `instructions` that take `cycles` of their unit in all.

    `passes` is the length of one matrix instruction. A matrix instruction's `reads` are its factors; it adds to
    what it writes unless `fresh`.
    """

    name: str
    reads: tuple[Held, ...]
    writes: tuple[Held, ...]
    unit: Unit
    instructions: int
    cycles: int
    passes: int = 0
    fresh: bool = False


@dataclass(frozen=True)
class Wait:
    """Until at most so many instructions of a counter are unfinished.

    `ties` are the register tiles that pass through the wait as operands, without which a compiler may use them
    before it.
    """

    vm: int | None = None
    lgkm: int | None = None
    ties: tuple[str, ...] = ()


@dataclass(frozen=True)
class Barrier:
    """Until all waves of the workgroup are at their next barrier. It waits for no counter."""


@dataclass(frozen=True)
class Priority:
    """The wave's priority among those of its SIMD, 0 to 3."""

    level: int


@dataclass(frozen=True)
class Fence:
    """Nothing is moved across by the compiler."""


@dataclass(frozen=True)
class Idle:
    """Wait states (s_nop), for hazards."""

    states: int


@dataclass(frozen=True)
class Scalar:
    """Bookkeeping in scalar registers, such as moving a pointer on."""

    name: str
    instructions: int = 1


Load = LoadDirect | LoadRegisters
Memory = LoadDirect | LoadRegisters | Put | Read | Store
Op = Memory | Pointer | Compute | Wait | Barrier | Priority | Fence | Idle | Scalar


# -- the whole ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cluster:
    """Ops that are issued in this order, by all groups or `only` by those named."""

    name: str
    ops: tuple[Op, ...]
    kind: Literal["memory", "compute", "other"] = "other"
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class Schedule:
    """One loop for one workgroup.

    The prologue, then rounds of the body, `period` steps each, while `tail` steps and a round are left, then the
    epilogue for the number of steps that are left. A number of steps without epilogue is not covered.

    `emission` says who owns what is between the ops: of "source" the compiler, which may move what nothing ties
    down and takes care of hazards; of "assembly" nobody, and hazards are the schedule's. `reserve` are registers
    of a lane for everything that is not a tile here.
    """

    name: str
    target: str
    groups: tuple[Group, ...]
    shared: tuple[SharedTile, ...]
    registers: tuple[RegisterTile, ...]
    prologue: tuple[Cluster, ...]
    body: tuple[Cluster, ...]
    epilogues: Mapping[int, tuple[Cluster, ...]] = field(hash=False)
    period: int = 1
    tail: int = 0
    emission: Literal["source", "assembly"] = "source"
    reserve: int = 0
    loc: Loc | None = None

    @property
    def waves(self) -> int:
        """Waves of the workgroup."""
        return sum(group.waves for group in self.groups)

    def rounds(self, steps: int) -> int:
        """How often the body runs."""
        return max(0, (steps - self.tail) // self.period)

    def covers(self, steps: int) -> bool:
        """Whether there is an epilogue for what the rounds leave."""
        return steps - self.rounds(steps) * self.period in self.epilogues
