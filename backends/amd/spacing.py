"""Wait states that LLVM leaves out where ways of different length meet.

Its hazard recogniser walks back from an instruction over blocks, each of them once: a block that a longer way reaches
first counts by that way alone (GCNHazardRecognizer.cpp, getWaitStatesSince). Within a block it counts right.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from warpwave.backends.amd.arch import Hazards, Target
from warpwave.backends.amd.assembly import Block, Instruction, parse
from warpwave.tiles.errors import InternalError

Registers = frozenset[tuple[str, int]]
NOTHING: Registers = frozenset()
VCC = ("s", 106)
_HALVES = {"vcc": (106, 107), "vcc_lo": (106, 106), "vcc_hi": (107, 107)}  # LLVM also takes them for ordinary values
MOST_NOPS = 16  # states of one s_nop

_REGISTER = re.compile(r"\b(?:([vas])(?:(\d+)\b|\[(\d+):(\d+)\])|(vcc(?:_lo|_hi)?)\b)")
_SECOND_RESULT = re.compile(r"v_((add|sub|subrev|addc|subb|subbrev)_co|div_scale|mad_[ui]64|swap|permlane\d+_swap)")
_CARRY_IN = re.compile(r"v_(addc|subb|subbrev)_co")
_SELECTS_LANE = re.compile(r"v_(read|write)lane")
_ACROSS_LANES = re.compile(r"_dpp$|^v_permlane\d+_swap")
_MEMORY = re.compile(r"(buffer|global|flat|scratch|ds)_")
_RETURNS = re.compile(r"_(load|read|rtn|b?permute|swizzle)")
_WIDE_STORE = re.compile(r"(buffer|global|flat|scratch)_store_(dwordx[34]|format_xyzw?)$")


@dataclass(frozen=True)
class Effects:
    """What an instruction does with registers.

    Of what it reads, `addend` is a matrix instruction's accumulator, `lane` says which lane to read or write, and
    `stored` is what a wide store writes to memory.
    """

    mnemonic: str
    writes: Registers
    reads: Registers
    addend: Registers = NOTHING
    lane: Registers = NOTHING
    stored: Registers = NOTHING

    @property
    def vector(self) -> bool:
        """Whether it is a vector instruction, matrix instructions apart."""
        return self.mnemonic.startswith("v_") and not self.matrix

    @property
    def matrix(self) -> bool:
        """Whether it is a matrix instruction."""
        return self.mnemonic.startswith("v_mfma")

    @property
    def single(self) -> bool:
        """Whether it multiplies f32."""
        return self.mnemonic.endswith("_f32")


def spaced(asm: str, target: Target) -> str:
    """The assembly, with the s_nop that are missing between dependent instructions of different blocks."""
    blocks = parse(asm).blocks
    rules = _Rules(target.hazards, {m.mnemonic: m.passes for m in target.mfma})
    missing: dict[int, int] = {}
    for number, block in enumerate(blocks):
        for first, states in _at_the_end(block, rules.reach):
            _follow(rules, blocks, first, states, number, missing)
    return _with_nops(asm, missing) if missing else asm


def _at_the_end(block: Block, reach: int) -> Iterator[tuple[Effects, int]]:
    """What the next blocks may still depend on, each with the states after it."""
    states = 0
    for instruction in reversed(block.instructions):
        if states >= reach:
            return
        effects = effects_of(instruction.mnemonic, instruction.operands)
        if effects is not None and (effects.writes or effects.stored):
            yield effects, states
        states += _states(instruction)


def _follow(
    rules: _Rules, blocks: tuple[Block, ...], first: Effects, states: int, number: int, missing: dict[int, int]
) -> None:
    """Note what is missing on the shortest way from `first` to every block."""
    todo = [(states, successor) for successor in blocks[number].successors]
    window = rules.window(first)
    seen: set[int] = set()
    heapq.heapify(todo)
    while todo and todo[0][0] < window:
        states, number = heapq.heappop(todo)
        if number in seen:
            continue
        seen.add(number)
        for instruction in blocks[number].instructions:
            states += missing.get(instruction.line, 0)
            second = effects_of(instruction.mnemonic, instruction.operands)
            needed = rules.needed(first, second) if second is not None else 0
            if needed > states:
                missing[instruction.line] = missing.get(instruction.line, 0) + needed - states
                states = needed
            states += _states(instruction)
            if states >= window:
                break
        for successor in blocks[number].successors:
            heapq.heappush(todo, (states, successor))


def _states(instruction: Instruction) -> int:
    return int(instruction.operands, 0) + 1 if instruction.mnemonic == "s_nop" else 1


def _with_nops(asm: str, missing: Mapping[int, int]) -> str:
    lines = asm.splitlines()
    for line, states in missing.items():
        counts = [min(MOST_NOPS, states - done) for done in range(0, states, MOST_NOPS)]
        lines[line] = "".join(f"\ts_nop {count - 1}\n" for count in counts) + lines[line]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class _Rules:
    """The target's table, asked about two instructions."""

    hazards: Hazards
    passes: Mapping[str, int]

    @property
    def reach(self) -> int:
        return max(self.hazards.reach, self.hazards.mask_to_memory)

    def window(self, first: Effects) -> int:
        """From so many states on nothing depends on `first` any more."""
        if first.matrix:
            return self.reach
        table = self.hazards
        if first.stored:
            return table.store_to_overwrite
        masks = any(kind == "s" for kind, _ in first.writes)
        return table.mask_to_memory if masks else max(table.vector_to_matrix, table.vector_to_lanes)

    def needed(self, first: Effects, second: Effects) -> int:
        """Wait states between them."""
        if first.matrix:
            return self._after_matrix(first, second)
        if first.stored:
            return self.hazards.store_to_overwrite if second.vector and first.stored & second.writes else 0
        used = first.writes & (second.reads | second.addend)
        needed = [0]
        if any(kind == "s" for kind, _ in first.writes):
            needed.append(self._after_mask(first.writes, used, second))
        if used and second.matrix:
            needed.append(self.hazards.vector_to_matrix)
        if used and _ACROSS_LANES.search(second.mnemonic):
            needed.append(self.hazards.vector_to_lanes)
        return max(needed)

    def _after_mask(self, written: Registers, used: Registers, second: Effects) -> int:
        if second.mnemonic.startswith("v_div_fmas") and VCC in written:
            return self.hazards.mask_to_division
        if not any(kind == "s" for kind, _ in used) or _CARRY_IN.match(second.mnemonic):
            return 0
        if used & second.lane:
            return self.hazards.mask_to_lane_select
        if second.vector or second.matrix:
            return self.hazards.mask_to_vector
        return self.hazards.mask_to_memory if not second.mnemonic.startswith("ds_") else 0

    def _after_matrix(self, first: Effects, second: Effects) -> int:
        passes, table = self._passes(first), self.hazards
        at_use = (table.single_to_vector if first.single else table.matrix_to_vector)[passes]
        if first.writes & (second.reads | second.writes if second.vector else second.reads):
            return at_use
        if second.matrix:
            return self._to_addend(first, second, passes) if first.writes & second.addend else 0
        overwritten = second.vector and not first.single and second.writes & first.addend
        return table.addend_to_vector[passes] if overwritten else 0

    def _to_addend(self, first: Effects, second: Effects, passes: int) -> int:
        if first.single == second.single and (first.writes, passes) == (second.addend, self._passes(second)):
            return self.hazards.matrix_to_same[passes]
        if first.single:
            return self.hazards.single_to_overlap[passes] if second.single else 0
        return self.hazards.matrix_to_overlap[passes]

    def _passes(self, matrix: Effects) -> int:
        if matrix.mnemonic not in self.passes:
            raise InternalError(f"the target's table has no {matrix.mnemonic}")
        return self.passes[matrix.mnemonic]


@lru_cache(maxsize=4096)
def effects_of(mnemonic: str, operands: str) -> Effects | None:
    """What a vector, matrix or memory instruction does with registers; None for others."""
    parts = operands.split(",")
    if mnemonic.startswith("v_mfma"):
        factors = registers_of(",".join(parts[1:3] + parts[4:]))
        mnemonic = mnemonic.replace("_scale", "")
        return Effects(mnemonic, registers_of(parts[0]), factors, addend=registers_of(parts[3]))
    if mnemonic.startswith("v_"):
        results = 2 if _SECOND_RESULT.match(mnemonic) else 1
        both = "swap" in mnemonic or (mnemonic.endswith("_dpp") and "bound_ctrl" not in operands)  # keeps an old value
        read = registers_of(",".join(parts if both else parts[results:]))
        lane = registers_of(parts[2]) if _SELECTS_LANE.match(mnemonic) else NOTHING
        return Effects(mnemonic, registers_of(",".join(parts[:results])), read, lane=lane)
    if _MEMORY.match(mnemonic):
        returns = _RETURNS.search(mnemonic) and not re.search(r"_lds_|\blds\b", f"{mnemonic} {operands}")
        read = registers_of(",".join(parts[1:] if returns else parts))
        return Effects(mnemonic, NOTHING, read, stored=_stored(mnemonic, parts))
    return None


def _stored(mnemonic: str, parts: list[str]) -> Registers:
    """The data of a wide store; a buffer's with an offset in a scalar register has none to wait for."""
    if not _WIDE_STORE.match(mnemonic):
        return NOTHING
    if not mnemonic.startswith("buffer"):
        return registers_of(parts[1])
    return NOTHING if registers_of(parts[3]) else registers_of(parts[0])


@lru_cache(maxsize=4096)
def registers_of(operands: str) -> Registers:
    """The registers that operands name."""
    found: set[tuple[str, int]] = set()
    for match in _REGISTER.finditer(operands):
        kind, single, low, high, vcc = match.groups()
        first, last = _HALVES[vcc] if vcc else (int(low or single), int(high or single))
        found.update((kind or "s", n) for n in range(first, last + 1))
    return frozenset(found)
