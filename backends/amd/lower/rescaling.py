"""Accumulators that are multiplied by a factor for each row: left out where all factors of a wave are 1.

A loop that keeps a running maximum multiplies what it has accumulated by 1 in most steps. Multiplying by 1 changes no
bit of a number, so the wave looks at its factors first.
"""

from __future__ import annotations

from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.plan import PING_PONG
from warpwave.tiles.ir import Op, walk
from warpwave.tiles.simt.convert import convert
from warpwave.tiles.simt.elementwise import lower_elementwise

# Items for each factor: few are multiplied as fast as they are looked at, and where the compiler mixes vector work with
# matrix instructions by itself, a branch between them costs as much as some more.
LEAST, LEAST_MIXED = 16, 64


def is_rescaling(lw: AmdLowering, op: Op) -> bool:
    """Whether an op multiplies, in a loop, what a product then adds to by few factors, repeated along an axis."""
    if op.name != "mul" or op.result.tile.is_scalar or op.result.tile.dtype.name != "f32":
        return False
    factor = lw.definitions.get(op.operands[1])
    if factor is None or factor.name != "broadcast" or factor.operands[0].tile.is_scalar:
        return False
    least = LEAST if lw.plan.schedule == PING_PONG else LEAST_MIXED
    if len(lw.layout(op.result).items) < least * len(_rows(lw, op)):
        return False
    users = [other for other in walk(lw.kernel.body) if op.result in other.operands]
    return bool(users) and all(other.name == "mma" and other.operands[0] is op.result for other in users)


def lower_mul(lw: AmdLowering, op: Op) -> None:
    """A multiplication; of an accumulator only if some lane's factor is not 1."""
    if not is_rescaling(lw, op):
        return lower_elementwise(lw, op)
    layout = lw.layout(op.result)
    old, factor = (convert(lw, v, layout) for v in op.operands)
    name = lw.declare(op.result)
    lw.body.line(f"{name} = {old};")
    changed = " || ".join(f"{factor}.get({item}) != 1.0f" for item in _rows(lw, op))
    with lw.body.block(f"if (any_lane({changed}))"), lw.body.each(len(layout.items)):
        lw.body.line(f"{name}.set(i, {old}.get(i) * {factor}.get(i));")
    return None


def _rows(lw: AmdLowering, op: Op) -> list[int]:
    """The first item of each factor."""
    factor = lw.definitions[op.operands[1]]
    repeated = {axis for axis, extent in enumerate(factor.operands[0].tile.shape) if extent == 1}
    first: dict[tuple[int, ...], int] = {}
    for number, item in enumerate(lw.layout(op.result).items):
        first.setdefault(tuple(0 if axis in repeated else x for axis, x in enumerate(item)), number)
    return list(first.values())
