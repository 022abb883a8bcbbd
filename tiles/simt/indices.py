"""Indices are made where they are used: an iota that counts rows here and columns there would tie both layouts."""

from __future__ import annotations

from warpwave.tiles.ir import Block, Kernel, Op, Value


def separate_indices(kernel: Kernel) -> None:
    """Give every use of an iota an iota of its own, beside its user."""
    _separate(kernel.body, {})


def _separate(block: Block, made: dict[Value, Op]) -> None:
    kept: list[Op] = []
    for op in block.ops:
        for region in op.regions:
            _separate(region, made)
        if op.name == "iota":
            made[op.result] = op
            continue
        for place, value in enumerate(op.operands):
            if value in made:
                kept.append(_copy(made[value]))
                op.operands[place] = kept[-1].result
        kept.append(op)
    block.ops[:] = kept


def _copy(op: Op) -> Op:
    return Op(op.name, [], op.attrs, [Value(op.result.type, op.result.name)], [], op.loc)
