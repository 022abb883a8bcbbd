"""Fragments that a scheduled loop keeps in C arrays of whole registers: of bytes the compiler would keep each apart."""

from __future__ import annotations

from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.operands import Operand


def words(operand: Operand) -> int:
    """Registers of a fragment."""
    return operand.per_lane * operand.dtype.nbytes // 4


def declare(lw: AmdLowering, operand: Operand, name: str) -> None:
    """Declare the array of all fragments of an operand."""
    steps, blocks = len(operand.order.merged), len(operand.places)
    lw.body.line(f"vec<u32, {words(operand)}> {name}[{steps}][{blocks}];")


def pack(lw: AmdLowering, operand: Operand, name: str) -> None:
    """Put the fragments of step s, which are declared, into the array."""
    # not `bits`: clang gives its copies for vectors of these and of the builtins' types one name
    packed = f"__builtin_bit_cast(vec<u32, {words(operand)}>, {operand.which}[i])"
    lw.body.line(f"EACH(i, {len(operand.places)}) {name}[s][i] = {packed};")


def unpack(lw: AmdLowering, operand: Operand, name: str, start: int = 0) -> None:
    """Take the fragments of step s, which are declared, from the array, whose first step is `start` before them."""
    kind, step = f"vec<{operand.kind}, {operand.per_lane}>", f"s + {start}" if start else "s"
    lw.body.line(f"EACH(i, {len(operand.places)}) {operand.which}[i] = __builtin_bit_cast({kind}, {name}[{step}][i]);")
