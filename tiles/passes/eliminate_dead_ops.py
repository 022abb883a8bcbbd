"""Removes ops whose results nobody uses and that have no other effect."""

from __future__ import annotations

from warpwave.tiles.ir import OPS, Block, Kernel, Op, Value, walk


def eliminate_dead_ops(kernel: Kernel) -> None:
    """Drop unused ops without effects, and loops and branches that only compute unused values."""
    while _sweep(kernel.body, _used(kernel.body)):
        pass


def _used(block: Block) -> set[Value]:
    return {v for op in walk(block) for v in op.operands}


def _sweep(block: Block, used: set[Value]) -> bool:
    kept = [op for op in block.ops if not _is_dead(op, used)]
    changed = len(kept) != len(block.ops)
    block.ops = kept
    for op in kept:
        for region in op.regions:
            changed |= _sweep(region, used)
    return changed


def _is_dead(op: Op, used: set[Value]) -> bool:
    if any(r in used for r in op.results):
        return False
    if op.name in ("for", "if"):  # a while might not end, so it stays
        inner = [o for region in op.regions for o in walk(region)]
        return all(o.name in ("yield", "for", "if") or _removable(o) for o in inner)
    return _removable(op)


def _removable(op: Op) -> bool:
    return OPS[op.name].effect != "write"
