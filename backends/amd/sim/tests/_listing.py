"""A kernel's assembly as a list of instructions with the registers they touch, and its flow of control."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from .model.operands import parse

REGISTER = re.compile(r"\b([vas])(\d+)\b|\b([vas])\[(\d+):(\d+)\]|\b(vcc|exec|m0|scc)(_lo|_hi)?\b")
BRANCH = re.compile(r"s_(c?branch\w*)\s+(\S+)")
HOLE = "s_hole"
LABEL = re.compile(r"^([.\w$]+):")
NO_RESULT = re.compile(
    r"s_hole|(global|flat|buffer|scratch)_store|ds_write|ds_nop|s_(waitcnt|barrier|nop|endpgm|c?branch|cmp|bitcmp|set|sleep)"
    r"|buffer_(wbl2|inv)|global_load_lds|s_dcache|ds_(add|sub|rsub|inc|dec|min|max|and|or|xor|mskor|cmpst|pk_add)_[^r]"
)
TWO_RESULTS = re.compile(
    r"v_(add|sub|subrev|addc|subb|subbrev)_co_u32|v_mad_[ui]64|v_div_scale|v_swap|v_permlane\d+_swap"
)
READS_RESULT = re.compile(r"v_(fmac|mac|dot\dc|pk_fmac|swap|permlane|smfmac|writelane|fma_mix(lo|hi)|mad_mix(lo|hi))")


@dataclass(frozen=True)
class Instruction:
    """One line of a kernel: its place in the text, mnemonic, and what it reads and writes."""

    line: int
    text: str

    @cached_property
    def parsed(self):
        return parse(self.text)

    @property
    def name(self) -> str:
        return self.text.split()[0]

    @cached_property
    def results(self) -> list[str]:
        """Operand texts that are written."""
        operands = self.parsed.operands
        base = self.parsed.base
        if base.startswith(("global_atomic", "flat_atomic", "buffer_atomic")):
            return operands[:1] if "sc0" in self.parsed.modifiers else []
        if "lds" in self.parsed.modifiers or NO_RESULT.match(base):
            return []
        return operands[: 2 if TWO_RESULTS.match(base) else 1]

    @cached_property
    def writes(self) -> frozenset[str]:
        found = registers(" , ".join(self.results))
        base = self.parsed.base
        if base.startswith("v_cmpx") or "saveexec" in base or "wrexec" in base:
            found |= {"exec"}
        if base.startswith("s_") and not base.startswith(("s_mov", "s_load", "s_buffer", "s_wait", "s_nop")):
            found |= {"scc"}
        return frozenset(found)

    @cached_property
    def reads(self) -> frozenset[str]:
        base, operands = self.parsed.base, self.parsed.operands
        sources = operands[len(self.results) :]
        if READS_RESULT.match(base) or base.startswith("buffer_atomic") or self.partial:
            sources = operands
        found = registers(" , ".join(sources))
        if base.startswith("v_div_fmas"):
            found |= {"vcc"}
        return frozenset(found)

    @property
    def partial(self) -> bool:
        """Writes part of a register, or keeps lanes: the old value matters."""
        return "UNUSED_PRESERVE" in self.text or "_d16" in self.name or self.parsed.suffix == "dpp"


def registers(text: str) -> set[str]:
    """v12, v[2:3] and vcc as {"v12", "v2", "v3", "vcc"}."""
    found = set()
    for bank, single, wide, first, last, special, _ in REGISTER.findall(text):
        if bank:
            found.add(bank + single)
        elif wide:
            found |= {f"{wide}{i}" for i in range(int(first), int(last) + 1)}
        else:
            found.add(special)
    return found


@dataclass(frozen=True)
class Listing:
    """The instructions of one kernel in a module's text, with successor indices."""

    name: str
    lines: tuple[str, ...]
    code: tuple[Instruction, ...]
    successors: tuple[tuple[int, ...], ...]

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.code]
        for index, following in enumerate(self.successors):
            for target in following:
                found[target].append(index)
        return tuple(tuple(f) for f in found)

    def after(self, index: int) -> list[Instruction]:
        """Everything that may run after an instruction, on any path."""
        seen: set[int] = set()
        work = list(self.successors[index])
        while work:
            place = work.pop()
            if place not in seen:
                seen.add(place)
                work += self.successors[place]
        return [self.code[i] for i in sorted(seen)]

    def replaced(self, index: int, text: str | None) -> str:
        """The module's text with one instruction changed, or removed."""
        lines = list(self.lines)
        lines[self.code[index].line] = f"\t{text}" if text else ""
        return "\n".join(lines) + "\n"

    def edited(self, index: int, text: str | None) -> Listing:
        """The same listing with one instruction changed; a removed one leaves a hole of no states."""
        code = list(self.code)
        code[index] = Instruction(code[index].line, text or HOLE)
        return Listing(self.name, self.lines, tuple(code), self.successors)


def listing(text: str, kernel: str) -> Listing:
    """Parse the function of a kernel."""
    lines = text.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith(f"{kernel}:"))
    code, labels = [], {}
    for number in range(start, len(lines)):
        line = lines[number].split(";")[0].split("//")[0].rstrip()
        if label := LABEL.match(line):
            if label[1].startswith((".Lfunc_end", ".Lend")):
                break
            labels[label[1]] = len(code)
        elif line.strip() and not line.strip().startswith("."):
            code.append(Instruction(number, line.strip()))
        elif re.match(r"\s*\.(size|section)", line):
            break
    return Listing(kernel, tuple(lines), tuple(code), _successors(code, labels))


def _successors(code: list[Instruction], labels: dict[str, int]) -> tuple[tuple[int, ...], ...]:
    result = []
    for index, item in enumerate(code):
        following = [index + 1] if index + 1 < len(code) else []
        branch = BRANCH.match(item.text)
        if branch:
            target = labels.get(branch[2])
            jump = [target] if target is not None and target < len(code) else []
            following = jump if branch[1] == "branch" else following + jump
        if item.name == "s_endpgm":
            following = []
        result.append(tuple(following))
    return tuple(result)
