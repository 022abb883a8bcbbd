"""The compiler's assembly as basic blocks, and the innermost loop where a kernel spends its time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

_LABEL = re.compile(r"^([.\w$]+):")
_INSTRUCTION = re.compile(r"^\s+([a-z]\w+)\b(.*)")
_ENDS = ("s_branch", "s_endpgm", "s_setpc_b64")

# First match wins; "" matches what is left of the prefix.
_CLASSES: tuple[tuple[str, str], ...] = (
    ("mfma", r"v_s?mfma"),
    ("accvgpr_moves", r"v_accvgpr"),
    ("valu", r"v_"),
    ("ds_read", r"ds_(read|load)"),
    ("ds_write", r"ds_(write|store)"),
    ("ds_other", r"ds_"),
    ("vmem_store", r"(buffer|global|flat|scratch)_store"),
    ("vmem_atomic", r"(buffer|global|flat)_atomic"),
    ("vmem_load", r"(buffer|global|flat|scratch)_load"),
    ("vmem_other", r"(buffer|global|flat|scratch)_"),
    ("smem", r"s_(buffer_)?load"),
    ("waits", r"s_waitcnt"),
    ("barriers", r"s_barrier"),
    ("nops", r"s_nop"),
    ("branches", r"s_c?branch"),
    ("salu", r"s_"),
)


@dataclass(frozen=True)
class Instruction:
    """One machine instruction and the line of the assembly that it stands on, from 0."""

    mnemonic: str
    operands: str
    line: int

    @property
    def kind(self) -> str:
        """Its class, as the instruction mix counts it."""
        is_load = self.mnemonic.startswith(("buffer_load", "global_load"))
        if is_load and ("_lds_" in self.mnemonic or re.search(r"\blds\b", self.operands)):
            return "direct_to_lds"
        return next((kind for kind, pattern in _CLASSES if re.match(pattern, self.mnemonic)), "other")


@dataclass(frozen=True)
class Block:
    """A straight run of instructions and the numbers of the blocks that may follow, the next in the text first."""

    instructions: tuple[Instruction, ...]
    successors: tuple[int, ...]


@dataclass(frozen=True)
class Loop:
    """A natural loop: its header's number and all its blocks."""

    header: int
    blocks: frozenset[int]


def instructions(asm: str) -> list[tuple[str, Instruction | None]]:
    """Labels (with None) and instructions, in order."""
    found: list[tuple[str, Instruction | None]] = []
    for number, text in enumerate(asm.splitlines()):
        code = text.split(";", 1)[0].split("//", 1)[0]
        if label := _LABEL.match(code):
            found.append((label[1], None))
        elif (match := _INSTRUCTION.match(code)) and not match[1].startswith("."):
            found.append(("", Instruction(match[1], match[2].strip(), number)))
    return found


@dataclass(frozen=True)
class Flow:
    """The control flow of one kernel."""

    blocks: tuple[Block, ...]

    @cached_property
    def dominators(self) -> tuple[frozenset[int], ...]:
        """For each block the blocks that every way to it leads through."""
        everything = frozenset(range(len(self.blocks)))
        before: list[list[int]] = [[] for _ in self.blocks]
        for number, block in enumerate(self.blocks):
            for successor in block.successors:
                before[successor].append(number)
        found = [frozenset([0]), *([everything] * (len(self.blocks) - 1))]
        changed = True
        while changed:
            changed = False
            for number in range(1, len(self.blocks)):
                ways = [found[p] for p in before[number]]
                new = (frozenset.intersection(*ways) if ways else frozenset()) | {number}
                changed = changed or new != found[number]
                found[number] = new
        return tuple(found)

    @cached_property
    def loops(self) -> list[Loop]:
        """All natural loops, by back edges; those with one header are one loop."""
        blocks: dict[int, set[int]] = {}
        for number, block in enumerate(self.blocks):
            for header in block.successors:
                if header in self.dominators[number]:
                    blocks.setdefault(header, {header}).update(self._body(header, number))
        return [Loop(header, frozenset(found)) for header, found in sorted(blocks.items())]

    def _body(self, header: int, latch: int) -> set[int]:
        """Blocks from which the back edge can be reached without passing the header."""
        before: dict[int, list[int]] = {}
        for number, block in enumerate(self.blocks):
            for successor in block.successors:
                before.setdefault(successor, []).append(number)
        found, todo = {header}, [latch]
        while todo:
            number = todo.pop()
            if number not in found:
                found.add(number)
                todo += before.get(number, [])
        return found

    @property
    def innermost(self) -> list[Loop]:
        """Loops that contain no other."""
        return [a for a in self.loops if not any(b is not a and b.blocks < a.blocks for b in self.loops)]

    def every_iteration(self, loop: Loop) -> list[Instruction]:
        """What each iteration executes: the blocks that no way round the loop leaves out."""
        latches = [n for n in loop.blocks if loop.header in self.blocks[n].successors]
        always = frozenset.intersection(*(self.dominators[n] for n in latches)) & loop.blocks
        return self._code(always)

    def conditional(self, loop: Loop) -> list[Instruction]:
        """What only some iterations execute: alternatives, and what a branch can skip."""
        always = {instruction.line for instruction in self.every_iteration(loop)}
        return [instruction for instruction in self._code(loop.blocks) if instruction.line not in always]

    def _code(self, blocks: Iterable[int]) -> list[Instruction]:
        return [instruction for number in sorted(blocks) for instruction in self.blocks[number].instructions]

    @cached_property
    def hot_loop(self) -> Loop | None:
        """The innermost loop with most matrix instructions, else most memory instructions, else the longest.

        Of loops with equally many matrix instructions it is the shortest: the others also mask, for a few iterations.
        """
        return max(self.innermost, key=lambda loop: _weight(mix(self.every_iteration(loop))), default=None)


def _weight(counts: Mapping[str, int]) -> tuple[int, int, int]:
    if "mfma" in counts:
        return counts["mfma"], -sum(counts.values()), 0
    memory = sum(n for kind, n in counts.items() if kind.startswith(("ds_", "vmem_", "direct_")))
    return 0, memory, sum(counts.values())


def mix(path: Iterable[Instruction]) -> dict[str, int]:
    """How many instructions of each class, classes in a fixed order, without those that do not occur."""
    counts = Counter(instruction.kind for instruction in path)
    order = ["mfma", "accvgpr_moves", "valu", "ds_read", "ds_write", "ds_other", "direct_to_lds"]
    order += [kind for kind, _ in _CLASSES if kind not in order]
    return {kind: counts[kind] for kind in [*order, "other"] if counts[kind]}


def parse(asm: str) -> Flow:
    """The blocks of the one kernel in `asm`."""
    runs = _runs(instructions(asm))
    numbers = {label: i for i, (labels, _) in enumerate(runs) for label in labels}
    return Flow(tuple(Block(tuple(run), _successors(run, i, len(runs), numbers)) for i, (_, run) in enumerate(runs)))


def _runs(items: Sequence[tuple[str, Instruction | None]]) -> list[tuple[list[str], list[Instruction]]]:
    """Instructions between labels and branches, with the labels in front of them."""
    runs: list[tuple[list[str], list[Instruction]]] = []
    ended = True
    for label, instruction in items:
        if not runs or (runs[-1][1] and (ended or instruction is None)):
            runs.append(([], []))
        if instruction is None:
            runs[-1][0].append(label)
            continue
        runs[-1][1].append(instruction)
        ended = instruction.mnemonic.startswith(("s_branch", "s_cbranch", "s_endpgm", "s_setpc"))
    return [run for run in runs if run[1]]


def _successors(run: Sequence[Instruction], number: int, count: int, numbers: Mapping[str, int]) -> tuple[int, ...]:
    last = run[-1]
    following = [] if last.mnemonic in _ENDS or number + 1 == count else [number + 1]
    if last.mnemonic.startswith(("s_branch", "s_cbranch")):
        target = numbers.get(last.operands.strip())
        following += [target] if target is not None and target not in following else []
    return tuple(following)
