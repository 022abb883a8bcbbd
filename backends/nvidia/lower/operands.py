"""Operands of matrix products: what all engines ask about them."""

from __future__ import annotations

from dataclasses import dataclass

from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.place import STEP_BYTES
from warpwave.tiles.dtypes import DType
from warpwave.tiles.ir import Op, Value
from warpwave.tiles.simt.context import SharedTile
from warpwave.tiles.simt.convert import convert
from warpwave.tiles.simt.layout import Layout
from warpwave.tiles.simt.shared import to_shared

FORMATS = {"f16": "F16", "bf16": "BF16", "f32": "TF32", "fp8e4m3": "E4M3", "fp8e5m2": "E5M2", "i8": "S8"}


@dataclass(frozen=True)
class Operand:
    """The first (`axis` 0) or second (1) operand of a product, in shared memory."""

    value: Value
    axis: int
    depth_last: bool
    shared: SharedTile

    @property
    def dtype(self) -> DType:
        """Its element type."""
        return self.value.tile.dtype

    @property
    def per_step(self) -> int:
        """Elements of k in one instruction."""
        return STEP_BYTES // self.dtype.nbytes

    def address(self, place: str, k: str) -> str:
        """C expression of the byte offset of an element: its row (of a) or column (of b), and k."""
        return self.shared.address(place, k) if self.depth_last else self.shared.address(k, place)


def depth_of(op: Op) -> int:
    """The extent of k."""
    return op.operands[1].tile.shape[0 if op.attrs["transpose_a"] else 1]


def shared_operand(lw: NvidiaLowering, op: Op, axis: int) -> Operand:
    """An operand in shared memory, moved there if it is in registers."""
    value = op.operands[1 + axis]
    shared = lw.shared.get(value) or to_shared(lw, value)
    lw.before_shared_read(shared.region)
    depth_last = bool(op.attrs["transpose_b"]) if axis else not op.attrs["transpose_a"]
    return Operand(value, axis, depth_last, shared)


def warp_origin(lw: NvidiaLowering, layout: Layout, axis: int, skip: int = 0) -> str:
    """The row (axis 0) or column at which this warp's part of a tile begins; without the first digits."""
    digits = lw.wave_digits(layout.waves)[skip:]
    return " + ".join(f"{d} * {part[axis]}" for d, part in digits if part[axis]) or "0"


def is_in_place(lw: NvidiaLowering, op: Op) -> bool:
    """Whether the product may overwrite its accumulator's variable: nothing else reads it."""
    acc = op.operands[0]
    made = lw.definitions.get(acc)
    own = made is None or made.name in ("broadcast", "mma", "mul", "add", "sub", "fma", "select", "for")
    alone = lw.uses[acc] == 1 and lw.home[acc] is lw.home[op]
    return own and alone and lw.layout(acc) == lw.layout(op.result)


def is_zero(lw: NvidiaLowering, value: Value) -> bool:
    """Whether a tile is known to be all zeros."""
    made = lw.definitions.get(value)
    if made is None or made.name != "broadcast":
        return False
    source = lw.definitions.get(made.operands[0])
    return source is not None and source.name == "constant" and source.attrs["value"] == 0


def start_accumulator(lw: NvidiaLowering, op: Op) -> str:
    """The variable of the result, holding what the product is added to."""
    acc = op.operands[0]
    if is_in_place(lw, op):
        lw.names[op.result] = lw.name(acc)
        return lw.names[op.result]
    start = convert(lw, acc, lw.layout(op.result))
    name = lw.declare(op.result)
    lw.body.line(f"{name} = {start};")
    return name
