"""Which instruction gave a register its value: reaching definitions of one use, and the constants among them."""

from __future__ import annotations

import re

from ._listing import Listing


def reaching(code: Listing, index: int, register: str) -> set[int]:
    """Indices of the instructions whose value of `register` may be seen at `index`."""
    found: set[int] = set()
    seen: set[int] = set()
    work = list(code.predecessors[index])
    while work:
        place = work.pop()
        if place in seen:
            continue
        seen.add(place)
        if register in code.code[place].writes:
            found.add(place)
        else:
            work += code.predecessors[place]
    return found


def constant(code: Listing, index: int, register: str) -> int | None:
    """The number that a register holds at an instruction, when moves of one literal are all that reach it."""
    moves = [code.code[i].text for i in reaching(code, index, register)]
    values = {found[1] for m in moves if (found := re.match(r"[sv]_mov(?:k_i32|_b32\S*) \w+, (\w+)$", m))}
    if len(values) != 1 or not all(re.match(r"[sv]_mov", m) for m in moves):
        return None
    text = values.pop()
    return int(text, 0) if re.fullmatch(r"-?\d+|0x[0-9a-f]+", text) else None
