"""Removes values that a loop or branch carries without need: unchanged, equal on both paths, or never used."""

from __future__ import annotations

from warpwave.tiles.ir import OPS, Block, Kernel, Op, Value, walk
from warpwave.tiles.passes.rewrite import replace_uses


def drop_dead_carries(kernel: Kernel) -> None:
    """Make loops and branches carry only values that change and are used."""
    changed = True
    while changed:
        replacements: dict[Value, Value] = {}
        used = {v for op in walk(kernel.body) for v in op.operands}
        changed = False
        for op in list(walk(kernel.body)):
            if op.name in _SHRINKERS:
                changed |= _shrink(op, used, replacements)
        replace_uses(kernel.body, replacements)


def _shrink(op: Op, used: set[Value], replacements: dict[Value, Value]) -> bool:
    same = _unchanged(op) if op.name != "if" else _equal_on_both_paths(op)
    live = _live_carries(op, used) if op.name != "if" else {i for i, r in enumerate(op.results) if r in used}
    keep = [i for i in range(len(op.results)) if i in live and i not in same]
    if len(keep) == len(op.results):
        return False
    for i in set(range(len(op.results))).difference(keep):
        if i in same:
            replacements[op.results[i]] = same[i]
        for argument in _arguments(op, i):  # what still reads it is dead, or it never changes
            replacements[argument] = _inits(op)[i]
    _SHRINKERS[op.name](op, keep)
    op.results = [op.results[i] for i in keep]
    return True


# -- which values are needed --------------------------------------------------------------------------


def _inits(op: Op) -> list[Value]:
    return op.operands[3:] if op.name == "for" else op.operands


def _arguments(op: Op, i: int) -> list[Value]:
    """The block arguments that hold carried value `i`."""
    if op.name == "if":
        return []
    return [region.args[i + (op.name == "for")] for region in op.regions]


def _ends(op: Op, i: int) -> list[Value]:
    """The terminator operands that pass on carried value `i`."""
    return [r.terminator.operands[i + (r.terminator.name == "condition")] for r in op.regions]


def _unchanged(op: Op) -> dict[int, Value]:
    """Carried values that a loop hands on as they came, with their initial value."""
    return {i: init for i, init in enumerate(_inits(op)) if _arguments(op, i) == _ends(op, i)}


def _equal_on_both_paths(op: Op) -> dict[int, Value]:
    pairs = {i: _ends(op, i) for i in range(len(op.results))}
    return {i: a for i, (a, b) in pairs.items() if a is b}


def _live_carries(op: Op, used: set[Value]) -> set[int]:
    """Carried values that are used after the loop, or in it for more than their own next value."""
    live = {i for i, r in enumerate(op.results) if r in used}
    while True:
        needed = {v for region in op.regions for v in _needed(region, live)}
        more = {i for i in range(len(op.results)) if not needed.isdisjoint(_arguments(op, i))}
        if more <= live:
            return live
        live |= more


def _needed(region: Block, live: set[int]) -> set[Value]:
    """Values that a loop's region needs for its effects and for the carried values `live`."""
    end = region.terminator
    first = int(end.name == "condition")
    needed = {*end.operands[:first], *(end.operands[first + i] for i in live)}
    for op in reversed(region.ops[:-1]):
        if OPS[op.name].effect == "write" or not needed.isdisjoint(op.results):
            needed.update(op.operands)
            needed.update(v for inner in op.regions for o in walk(inner) for v in o.operands)
    return needed


# -- keeping some values ------------------------------------------------------------------------------


def _shrink_for(op: Op, keep: list[int]) -> None:
    (body,) = op.regions
    op.operands = op.operands[:3] + [op.operands[3 + i] for i in keep]
    body.args = body.args[:1] + [body.args[1 + i] for i in keep]
    body.terminator.operands = [body.terminator.operands[i] for i in keep]


def _shrink_while(op: Op, keep: list[int]) -> None:
    before, after = op.regions
    op.operands = [op.operands[i] for i in keep]
    for region in op.regions:
        region.args = [region.args[i] for i in keep]
    before.terminator.operands = before.terminator.operands[:1] + [before.terminator.operands[1 + i] for i in keep]
    after.terminator.operands = [after.terminator.operands[i] for i in keep]


def _shrink_if(op: Op, keep: list[int]) -> None:
    for region in op.regions:
        region.terminator.operands = [region.terminator.operands[i] for i in keep]
    op.attrs = {**op.attrs, "types": tuple(op.attrs["types"][i] for i in keep)}


_SHRINKERS = {"for": _shrink_for, "while": _shrink_while, "if": _shrink_if}
