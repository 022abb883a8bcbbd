"""Operands in which a compiler may see +0: some take +0 - x, and +0 + -x, for -x, which differs where x is 0."""

from __future__ import annotations

from collections.abc import Mapping

from warpwave.tiles.ir import Block, Kernel, Op, Value
from warpwave.tiles.simt.assign import TIED, ties

COPIES = frozenset(("broadcast", "expand_dims", "squeeze", "transpose", "slice", "distribute"))
Numbers = Mapping[Value, float | None]


def known_numbers(kernel: Kernel) -> Numbers:
    """What a compiler can compute: constants with their number, and with None what comes of them and of counters.

    A variable of a loop or branch counts if one of the values that it may have is 0.
    """
    known: dict[Value, float | None] = {}
    count = -1
    while count != len(known):  # what a loop carries may become known in its body
        count = len(known)
        _note(kernel.body, known)
    return known


def _note(block: Block, known: dict[Value, float | None]) -> None:
    for op in block.ops:
        if op.name == "constant":
            known[op.result] = float(op.attrs["value"])
        elif op.name in COPIES and op.operands[0] in known:
            known[op.result] = known[op.operands[0]]
        elif op.name == "iota" or (op.name in TIED and all(v in known for v in op.operands)):
            known.setdefault(op.result, None)
        elif op.name == "for":
            known.setdefault(op.regions[0].args[0], None)
        for region in op.regions:
            _note(region, known)
        for variable in ties(op) if op.regions else ():
            if any(_may_be_zero(v, known) for v in variable):
                known.update((v, None) for v in variable if v not in known)


def _may_be_zero(value: Value, known: Numbers) -> bool:
    return value in known and not known[value]


def visible_zeros(op: Op, known: Numbers, made: Mapping[Value, Op]) -> frozenset[int]:
    """Which operands of a sum or difference of floats the compiler must not know."""
    if op.name not in ("add", "sub") or not op.result.tile.dtype.is_float:
        return frozenset()
    left, right = op.operands
    if op.name == "sub":
        return frozenset([0] if _may_be_zero(left, known) else [])
    found = [0] if _may_be_zero(left, known) and _is_negated(right, known, made) else []
    return frozenset(found + ([1] if _may_be_zero(right, known) and _is_negated(left, known, made) else []))


def _is_negated(value: Value, known: Numbers, made: Mapping[Value, Op]) -> bool:
    """Whether a compiler can take a minus sign out of a value."""
    op = made.get(value)
    if op is None:
        return False
    if op.name in ("mul", "div"):
        return any((known.get(v) or 0.0) < 0 or _is_negated(v, known, made) for v in op.operands)
    return op.name == "neg" or (op.name in (*COPIES, "cast") and _is_negated(op.operands[0], known, made))
