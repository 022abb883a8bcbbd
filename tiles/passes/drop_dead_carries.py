"""Removes values that a loop or branch carries without need: unchanged in the loop, or never used."""

from __future__ import annotations

from warpwave.tiles.ir import Block, Kernel, Op, Value, walk
from warpwave.tiles.passes.rewrite import replace_uses


def drop_dead_carries(kernel: Kernel) -> None:
    """Make loops and branches carry only values that change and are used."""
    changed = True
    while changed:
        replacements: dict[Value, Value] = {}
        used = {v for op in walk(kernel.body) for v in op.operands}
        changed = False
        for op in list(walk(kernel.body)):
            if op.name == "for":
                changed |= _shrink_for(op, used, replacements)
            elif op.name == "if":
                changed |= _shrink_if(op, used)
        replace_uses(kernel.body, replacements)


def _shrink_for(op: Op, used: set[Value], replacements: dict[Value, Value]) -> bool:
    (body,) = op.regions
    keep: list[int] = []
    for i, (arg, result) in enumerate(zip(body.args[1:], op.results, strict=True)):
        init, final = op.operands[3 + i], body.terminator.operands[i]
        if final is arg:
            replacements[arg] = replacements[result] = init
        elif result not in used and not _needed_inside(body, arg):
            replacements[arg] = init  # feeds only its own next value, which goes with it
        else:
            keep.append(i)
    if len(keep) == len(op.results):
        return False
    op.operands = op.operands[:3] + [op.operands[3 + i] for i in keep]
    body.args = body.args[:1] + [body.args[1 + i] for i in keep]
    body.terminator.operands = [body.terminator.operands[i] for i in keep]
    op.results = [op.results[i] for i in keep]
    return True


def _needed_inside(body: Block, arg: Value) -> bool:
    return any(arg in op.operands for op in walk(body))


def _shrink_if(op: Op, used: set[Value]) -> bool:
    keep = [i for i, result in enumerate(op.results) if result in used]
    if len(keep) == len(op.results):
        return False
    for region in op.regions:
        region.terminator.operands = [region.terminator.operands[i] for i in keep]
    op.results = [op.results[i] for i in keep]
    op.attrs = {**op.attrs, "types": tuple(op.attrs["types"][i] for i in keep)}
    return True
