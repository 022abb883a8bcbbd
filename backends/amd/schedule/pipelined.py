"""A pipelined loop as generators of schedules see it: what it loads, its bursts of matrix work, what each needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from warpwave.backends.amd.schedule.form import Compute, Held, Part, RegisterTile
from warpwave.tiles.errors import Loc


@dataclass(frozen=True)
class Source:
    """A tile that the loop loads, in `parts` of `nbytes`, each by `vm` instructions of a wave.

    Without `puts` the loads go straight to LDS; else through `registers`, which `puts` instructions write there.
    """

    name: str
    parts: int
    slots: int
    nbytes: int
    vm: int
    puts: int = 0
    registers: int = 0

    @property
    def staging(self) -> str:
        """Name of the registers that tiles pass through."""
        return f"next {self.name}"


@dataclass(frozen=True)
class Fragment:
    """A part of a tile as bursts use it: `registers` of a lane, read by `lgkm` instructions.

    Unless `tracked`, the compiler does not know that it has to wait for them.
    """

    tile: str
    part: int
    registers: int
    lgkm: int
    tracked: bool = True


@dataclass(frozen=True)
class Burst:
    """Matrix work that is one compute cluster, the fragments that it uses, and vector work just before and `beside` it.

    The first of a step has no such work. A burst belongs to the step that is `late` steps back; what is late after the
    last step is done at the end, and what is -1 late, a step ahead, is done for the first step before the loop.
    """

    work: Compute
    uses: tuple[Fragment, ...]
    before: tuple[Compute, ...] = ()
    late: int = 0
    beside: tuple[Compute, ...] = ()


@dataclass(frozen=True)
class PipelinedLoop:
    """What is to be scheduled: the bursts of a step in order, and the vector work that nothing in the step needs.

    `held` are register tiles that live through the loop or a part of it: accumulators, operands, probabilities.
    """

    target: str
    waves: int
    sources: tuple[Source, ...]
    bursts: tuple[Burst, ...]
    after: tuple[Compute, ...] = ()
    held: tuple[RegisterTile, ...] = ()
    reserve: int = 0
    loc: Loc | None = None

    @cached_property
    def fragments(self) -> tuple[Fragment, ...]:
        """All that bursts use, by first use."""
        return tuple(dict.fromkeys(f for burst in self.bursts for f in burst.uses))

    def late(self, tile: str, part: int) -> int:
        """By how many steps a part of a tile is used late; by -1, a step ahead."""
        return next(b.late for b in self.bursts if any((f.tile, f.part) == (tile, part) for f in b.uses))

    def used(self, fragment: Fragment) -> tuple[int, int]:
        """The first and last burst of a step that use it."""
        at = [i for i, burst in enumerate(self.bursts) if fragment in burst.uses]
        return at[0], at[-1]

    @cached_property
    def buffers(self) -> dict[Fragment, str]:
        """The registers of each fragment: shared by fragments that no burst needs together."""
        found: list[list[Fragment]] = []
        for fragment in self.fragments:
            free = (b for b in found if all(not self._together(fragment, other) for other in b))
            chosen = next(free, None)
            if chosen is None:
                found.append([fragment])
            else:
                chosen.append(fragment)
        return {fragment: f"fragments {i}" for i, group in enumerate(found) for fragment in group}

    def _together(self, a: Fragment, b: Fragment) -> bool:
        (first, last), (other_first, other_last) = self.used(a), self.used(b)
        return first <= other_last and other_first <= last

    @cached_property
    def reads(self) -> dict[Fragment, int]:
        """The memory cluster in which each fragment is read, counted from the first of the step that uses it."""
        count = len(self.bursts)
        busy = [0] * count
        placed: dict[Fragment, int] = {}
        for fragment in sorted(self.fragments, key=lambda f: (self.used(f)[0] - self._earliest(f), -f.lgkm)):
            window = range(self.used(fragment)[0], self._earliest(fragment) - 1, -1)
            placed[fragment] = min(window, key=lambda m: busy[m % count])
            busy[placed[fragment] % count] += fragment.lgkm
        return placed

    def _earliest(self, fragment: Fragment) -> int:
        """The first memory cluster in which the fragment's registers are free."""
        count, (first, last) = len(self.bursts), self.used(fragment)
        sharing = [self.used(f)[1] for f in self.fragments if self.buffers[f] == self.buffers[fragment]]
        before = [end for end in sharing if end < first] or [max(sharing) - count]
        return max(*before, last - count) + 1

    def tiles(self) -> Iterator[RegisterTile]:
        """Those that fragments lie in, those that tiles pass through, and those that live through the loop."""
        for name in dict.fromkeys(self.buffers.values()):
            yield RegisterTile(name, max(f.registers for f, buffer in self.buffers.items() if buffer == name))
        for source in self.sources:
            if source.puts:
                yield RegisterTile(source.staging, source.registers * source.parts, source.parts)
        yield from self.held

    @property
    def registers(self) -> int:
        """Registers of a lane in all."""
        return sum(tile.count for tile in self.tiles()) + self.reserve

    def work(self, number: int, step: int = 0) -> Compute:
        """A burst of a step, with the fragments that it reads."""
        burst = self.bursts[number]
        fragments = tuple(Held(self.buffers[f], Part(f.tile, f.part, step - burst.late)) for f in burst.uses)
        return replace(burst.work, reads=(*fragments, *burst.work.reads))
