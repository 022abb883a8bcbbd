"""Loop-invariant code motion: scalar ops that do not change in a loop move in front of it.

Tiles stay where they are: moving one would hold its registers through the loop, which is a backend's choice.
"""

from __future__ import annotations

from warpwave.tiles.ir import OPS, Block, Kernel, Op, Value
from warpwave.tiles.types import TileType


def hoist_invariants(kernel: Kernel) -> None:
    """Move invariant scalar ops without effects out of loops, innermost loops first."""
    _visit(kernel.body)


def _visit(block: Block) -> None:
    position = 0
    while position < len(block.ops):
        op = block.ops[position]
        for region in op.regions:
            _visit(region)
        if op.name in ("for", "while"):
            moved = [o for region in op.regions for o in _take_invariant(region)]
            block.ops[position:position] = moved
            position += len(moved)
        position += 1


def _take_invariant(body: Block) -> list[Op]:
    inside: set[Value] = set(body.args)
    moved: list[Op] = []
    kept: list[Op] = []
    for op in body.ops:
        if _is_scalar_op(op) and not any(v in inside for v in op.operands):
            moved.append(op)
        else:
            kept.append(op)
            inside.update(op.results)
    body.ops = kept
    return moved


def _is_scalar_op(op: Op) -> bool:
    """Ops that cannot fail and give scalars; a division by zero must not move to where it was not reached."""
    if OPS[op.name].effect != "none" or op.name in ("floordiv", "mod"):
        return False
    return all(isinstance(r.type, TileType) and r.type.is_scalar for r in op.results)
