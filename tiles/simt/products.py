"""How the matrix products of a kernel are connected: what a backend asks before it splits them over waves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from warpwave.tiles.ir import Kernel, Op, Value, walk
from warpwave.tiles.types import TileType

Families = Mapping[Value, set[Value]]


def register_tiles(kernel: Kernel) -> Iterator[TileType]:
    """Types of all register tiles that ops make."""
    for op in walk(kernel.body):
        for result in op.results:
            if isinstance(result.type, TileType) and result.type.space == "register":
                yield result.type


def products(kernel: Kernel) -> list[Op]:
    """All mma ops, in program order."""
    return [op for op in walk(kernel.body) if op.name == "mma"]


def is_tile_grid(kernel: Kernel, families: Families) -> bool:
    """Whether blocks of a row of the grid share one operand and blocks of a column the other, as in a product."""
    grid = next((op for op in kernel.body.ops if op.name == "grid"), None)
    found = products(kernel)
    return (
        grid is not None and len(grid.results) >= 2 and len(found) == 1 and not is_rowwise(kernel, found[0], families)
    )


def constraint(kernel: Kernel, op: Op, families: Families) -> tuple[int, int] | None:
    """The user's `over=` for a product's accumulator, if there is one."""
    family = families[op.result]
    for other in walk(kernel.body):
        if other.name == "distribute" and other.operands[0] in family and len(other.attrs["over"]) == 2:
            over: tuple[int, int] = other.attrs["over"]
            return over
    return None


def asked_split(kernel: Kernel, found: Iterable[Op], families: Families) -> tuple[int, int] | None:
    """The first `over=` of a product's accumulator, which says how many waves the kernel has."""
    return next((over for op in found if (over := constraint(kernel, op, families)) is not None), None)


def is_rowwise(kernel: Kernel, op: Op, families: Families) -> bool:
    """Whether rows are reduced, or a product feeds this one or is fed by it: then a wave should own whole rows."""
    family = families[op.result]
    for other in walk(kernel.body):
        if other.name.startswith("reduce_") and other.attrs["axis"] == 1 and other.operands[0] in family:
            return True
        if other.name == "mma" and other is not op:
            linked = other.operands[1] in family or op.operands[1] in families[other.result]
            if linked:
                return True
    return False


def uneven_axes(kernel: Kernel) -> set[int] | None:
    """The grid's axes on which the bounds of a block's loops depend; None if that cannot be told."""
    grid = next((op for op in kernel.body.ops if op.name == "grid"), None)
    if grid is None or any(op.name == "while" for op in walk(kernel.body)):
        return None
    made = {r: op for op in walk(kernel.body) for r in op.results}
    ends = [v for op in walk(kernel.body) if op.name == "for" for v in op.operands[:3]]
    ends += [op.operands[0] for op in walk(kernel.body) if op.name == "if"]
    needed = ancestors(ends, made)
    return {axis for axis, coordinate in enumerate(grid.results) if coordinate in needed}


def ancestors(values: Iterable[Value], made: Mapping[Value, Op]) -> set[Value]:
    """These values and all that they are computed from, by the ops that made them, up to the grid."""
    seen: set[Value] = set()
    left = list(values)
    while left:
        value = left.pop()
        op = made.get(value)
        if value not in seen and op is not None and op.name != "grid":
            left += op.operands
        seen.add(value)
    return seen
