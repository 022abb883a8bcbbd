"""What is known, when compiling, about the divisors of run-time integers: decides where wide accesses may start."""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpwave.tiles.ir import Kernel, Op, Value, walk
from warpwave.tiles.simt.context import Lowering
from warpwave.tiles.types import TileType

ANY = 1 << 30  # divides what is always 0


def definitions(kernel: Kernel) -> dict[Value, Op]:
    """The op that makes each value; a loop's counter is made by the loop."""
    made = {result: op for op in walk(kernel.body) for result in op.results}
    made.update((op.regions[0].args[0], op) for op in walk(kernel.body) if op.name == "for")
    return made


def divisor(lw: Lowering, value: Value) -> int:
    """The largest power of two known to divide an integer; those also divide it after a wrap to 32 bits."""
    op = lw.definitions.get(value)
    if op is None:
        return 1
    if op.name == "constant":
        return _power_of_two(int(op.attrs["value"]))
    if op.name == "mul":
        return min(math.prod(divisor(lw, v) for v in op.operands), ANY)
    if op.name in ("add", "sub", "min", "max"):
        return min(divisor(lw, v) for v in op.operands)
    if op.name == "select":
        return min(divisor(lw, v) for v in op.operands[1:])
    if op.name in ("neg", "cast") and op.operands[0].tile.dtype.is_int:
        return divisor(lw, op.operands[0])
    if op.name == "for" and value is op.regions[0].args[0]:
        start, _, step = op.operands[:3]
        return min(divisor(lw, start), divisor(lw, step))
    return 1


def _power_of_two(x: int) -> int:
    return min(x & -x, ANY) if x else ANY


def origin_divisor(lw: Lowering, op: Op, coords: Sequence[Value], tile: TileType) -> int:
    """Divides the place along the tensor's rows where a tile begins; 1 if it does not lie along the rows."""
    axes = op.attrs["axes"]
    if not axes or axes[-1] != len(coords) - 1:
        return 1
    scale = _power_of_two(tile.shape[-1]) if op.attrs["unit"] == "tile" else 1
    return min(divisor(lw, coords[-1]) * scale, ANY)
