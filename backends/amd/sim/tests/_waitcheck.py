"""A static check of s_waitcnt, made independently of the simulator: which uses no wait covers on some path.

Per counter, each pending register has an age: how many later operations of that counter were issued
(the least over all paths). `vmcnt(N)` proves those of age N or more, as vector memory returns in order;
scalar loads return in any order, so only lgkmcnt(0) proves anything once one is outstanding (amd.md 3).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ._listing import Instruction, Listing

FOREVER = 64
LDS_WRITE, LDS_DMA = "LDS write", "LDS direct load"


@dataclass
class Pending:
    """Ages of outstanding results by counter, and whether scalar loads are among them."""

    vm: dict[str, int] = field(default_factory=dict)
    lgkm: dict[str, int] = field(default_factory=dict)
    scalar: bool = False

    def copy(self) -> Pending:
        return Pending(dict(self.vm), dict(self.lgkm), self.scalar)

    def merge(self, other: Pending) -> bool:
        """Take the worst of both; whether anything changed."""
        before = (dict(self.vm), dict(self.lgkm), self.scalar)
        for mine, theirs in ((self.vm, other.vm), (self.lgkm, other.lgkm)):
            for name, age in theirs.items():
                mine[name] = min(age, mine.get(name, FOREVER))
        self.scalar |= other.scalar
        return before != (self.vm, self.lgkm, self.scalar)


def issue(pending: dict[str, int], names: set[str] | frozenset[str]) -> None:
    for name in pending:
        pending[name] = min(pending[name] + 1, FOREVER)
    pending.update(dict.fromkeys(names, 0))


def is_vector_memory(item: Instruction) -> bool:
    return item.name.startswith(("global_", "flat_", "buffer_", "scratch_")) and not item.name.startswith(
        ("buffer_inv", "buffer_wbl2")
    )


def count(text: str, counter: str) -> int | None:
    found = re.search(rf"{counter}\((\d+)\)", text)
    return int(found[1]) if found else None


def wait(pending: Pending, text: str) -> None:
    vm, lgkm = count(text, "vmcnt"), count(text, "lgkmcnt")
    if re.fullmatch(r"s_waitcnt\s+(0x[0-9a-f]+|\d+)", text):
        value = int(text.split()[1], 0)
        vm, lgkm = value & 15 | value >> 14 << 4, value >> 8 & 15
    if vm is not None:
        pending.vm = {name: age for name, age in pending.vm.items() if age < vm}
    if lgkm is not None and (lgkm == 0 or not pending.scalar):
        pending.lgkm = {name: age for name, age in pending.lgkm.items() if age < lgkm}
        pending.scalar &= lgkm != 0


def step(pending: Pending, item: Instruction) -> None:
    """The state after an instruction."""
    name = item.name
    if name == "s_waitcnt":
        return wait(pending, item.text)
    if is_vector_memory(item):
        direct = "lds" in item.parsed.modifiers or "load_lds" in name
        issue(pending.vm, {LDS_DMA} if direct else item.writes)
        if name.startswith("flat_"):
            issue(pending.lgkm, item.writes)
    elif name.startswith("ds_"):
        issue(pending.lgkm, item.writes or {LDS_WRITE})
    elif name.startswith(("s_load", "s_buffer_load", "s_memtime", "s_memrealtime")):
        issue(pending.lgkm, item.writes)
        pending.scalar = True
    return None


def uses(pending: Pending, item: Instruction) -> set[str]:
    """Pending things that an instruction may not touch yet."""
    waiting = set(pending.vm) | set(pending.lgkm)
    if item.name == "s_barrier":
        return waiting & {LDS_WRITE}
    return waiting & (item.reads | item.writes)


def solve(code: Listing) -> list[Pending]:
    """The state before each instruction: a worklist over the flow of control."""
    states = [Pending() for _ in code.code]
    work = set(range(len(code.code)))
    while work:
        index = work.pop()
        after = states[index].copy()
        step(after, code.code[index])
        for following in code.successors[index]:
            if states[following].merge(after):
                work.add(following)
    return states


def violations(code: Listing) -> list[tuple[int, set[str]]]:
    """Instructions that touch something that is still pending on some path."""
    found = ((i, uses(state, code.code[i])) for i, state in enumerate(solve(code)))
    return [(i, names) for i, names in found if names]
