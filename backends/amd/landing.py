"""Whether built code leaves alone what transposing reads have not yet brought.

Those reads are written as assembly, so the compiler does not know when their registers are filled, and could copy
or reuse them too early. The wait that releases them always waits for all of LDS.
"""

from __future__ import annotations

import re

from warpwave.backends.amd.assembly import Block, Instruction, parse
from warpwave.tiles.errors import InternalError

READS = "ds_read_b64_tr_b"
_REGISTERS = re.compile(r"\bv(?:\[(\d+):(\d+)\]|(\d+))")
_ALL_OF_LDS = re.compile(r"lgkmcnt\(0\)|^0$")


def check_landing(asm: str) -> None:
    """InternalError if an instruction uses a register on any way between a transposing read and its wait."""
    if READS not in asm:
        return
    blocks = parse(asm).blocks
    entering: list[frozenset[int]] = [frozenset()] * len(blocks)
    todo = set(range(len(blocks)))
    while todo:
        number = todo.pop()
        leaving = _through(blocks[number], entering[number])
        for successor in blocks[number].successors:
            if not leaving <= entering[successor]:
                entering[successor] |= leaving
                todo.add(successor)


def _through(block: Block, pending: frozenset[int]) -> frozenset[int]:
    """Registers that are still to be filled after a block."""
    for instruction in block.instructions:
        if instruction.mnemonic == "s_waitcnt" and _ALL_OF_LDS.search(instruction.operands):
            pending = frozenset()
            continue
        used = registers(instruction.operands)
        if not pending.isdisjoint(used):
            raise _too_early(instruction)
        if instruction.mnemonic.startswith(READS):
            pending |= registers(instruction.operands.split(",", 1)[0])
    return pending


def registers(operands: str) -> frozenset[int]:
    """Numbers of the VGPRs that operands name."""
    found: set[int] = set()
    for first, last, single in _REGISTERS.findall(operands):
        found.update([int(single)] if single else range(int(first), int(last) + 1))
    return frozenset(found)


def _too_early(instruction: Instruction) -> InternalError:
    return InternalError(
        f"line {instruction.line + 1} of the assembly, {instruction.mnemonic} {instruction.operands}, uses a register "
        "that a transposing read has not filled yet"
    )
