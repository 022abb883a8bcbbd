"""What is known, when compiling, about the divisors of run-time integers: decides where wide accesses may start."""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpwave.tiles.ir import Kernel, Op, Value, walk
from warpwave.tiles.simt.context import Lowering
from warpwave.tiles.types import TileType

ANY = 1 << 30  # divides what is always 0
UNIT = 16  # bytes that rows of tensors with wide rows are multiples of


def definitions(kernel: Kernel) -> dict[Value, Op]:
    """The op that makes each value; a loop's counter is made by the loop."""
    made = {result: op for op in walk(kernel.body) for result in op.results}
    made.update((op.regions[0].args[0], op) for op in walk(kernel.body) if op.name == "for")
    return made


def divisor(lw: Lowering, value: Value, wide: set[Value] | None = None) -> int:
    """The largest power of two known to divide an integer; those also divide it after a wrap to 32 bits.

    `wide` collects the tensors which that supposes to have wide rows; without it, nothing is known of extents.
    """
    op = lw.definitions.get(value)
    if op is None:
        return 1
    if op.name == "dim":
        return _row_divisor(op, wide)
    if op.name == "constant":
        return _power_of_two(int(op.attrs["value"]))
    if op.name == "mul":
        return min(math.prod(divisor(lw, v, wide) for v in op.operands), ANY)
    if op.name in ("add", "sub", "min", "max"):
        return min(divisor(lw, v, wide) for v in op.operands)
    if op.name == "select":
        return min(divisor(lw, v, wide) for v in op.operands[1:])
    if op.name in ("neg", "cast") and op.operands[0].tile.dtype.is_int:
        return divisor(lw, op.operands[0], wide)
    if op.name == "for" and value is op.regions[0].args[0]:
        start, _, step = op.operands[:3]
        return min(divisor(lw, start, wide), divisor(lw, step, wide))
    return 1


def _row_divisor(op: Op, wide: set[Value] | None) -> int:
    """Wide rows are of whole 16-byte units."""
    (tensor,) = op.operands
    if wide is None or op.attrs["axis"] != tensor.tensor.rank - 1:
        return 1
    wide.add(tensor)
    return UNIT // tensor.tensor.dtype.nbytes


def _power_of_two(x: int) -> int:
    return min(x & -x, ANY) if x else ANY


def origin_divisor(lw: Lowering, op: Op, coords: Sequence[Value], tile: TileType) -> int:
    """Divides the place along the tensor's rows where a tile begins; 1 if it does not lie along the rows."""
    axes = op.attrs["axes"]
    if not axes or axes[-1] != len(coords) - 1:
        return 1
    scale = _power_of_two(tile.shape[-1]) if op.attrs["unit"] == "tile" else 1
    return min(divisor(lw, coords[-1]) * scale, ANY)


# -- comparisons that are the same for neighbours -------------------------------------------------------

_UP_TO = {"lt": (0, 1), "ge": (0, 1), "gt": (1, 0), "le": (1, 0)}  # operands: a column's number, and a bound


def run_of_equal_results(lw: Lowering, op: Op) -> tuple[int, set[Value]]:
    """How many neighbours along rows, from a multiple of that on, a comparison finds alike.

    So it is for `column < bound` and its forms, where the bound is a multiple of that as well. What is returned with it
    are the tensors that must have wide rows.
    """
    wide: set[Value] = set()
    if op.name not in _UP_TO or not op.operands[0].tile.dtype.is_int:
        return 1, wide
    column, bound = (op.operands[i] for i in _UP_TO[op.name])
    return min(_column_divisor(lw, column, wide), divisor(lw, _scalar_of(lw, bound), wide)), wide


def _keeps_columns(op: Op) -> bool:
    """Whether each column of a vector or tile becomes the column of the same number."""
    if op.name == "expand_dims":
        return bool(op.attrs["axis"] == 0)
    source = op.operands[0].tile if op.name == "broadcast" else None
    return source is not None and not source.is_scalar and source.shape[-1] == op.results[0].tile.shape[-1]


def _scalar_of(lw: Lowering, value: Value) -> Value:
    """The scalar that a tile repeats, or the tile."""
    op = lw.definitions.get(value)
    while op is not None and op.name in ("broadcast", "expand_dims"):
        value = op.operands[0]
        op = lw.definitions.get(value)
    return value


def _column_divisor(lw: Lowering, value: Value, wide: set[Value]) -> int:
    """For numbers that count up along rows: what divides the first one; 1 for all others."""
    op = lw.definitions.get(value)
    if op is None:
        return 1
    if op.name == "iota":
        return ANY if op.attrs["axis"] == value.tile.rank - 1 else 1
    if _keeps_columns(op):
        return _column_divisor(lw, op.operands[0], wide)
    if op.name == "add":
        left, right = op.operands
        return max(_shifted_divisor(lw, left, right, wide), _shifted_divisor(lw, right, left, wide))
    return 1


def _shifted_divisor(lw: Lowering, column: Value, shift: Value, wide: set[Value]) -> int:
    supposed: set[Value] = set()
    found = min(_column_divisor(lw, column, supposed), divisor(lw, _scalar_of(lw, shift), supposed))
    wide |= supposed if found > 1 else set()
    return found
