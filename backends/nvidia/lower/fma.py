"""Products without a matrix instruction: f32 in full precision, and formats that the tensor cores do not know."""

from __future__ import annotations

from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.operands import Operand, depth_of, shared_operand, start_accumulator
from warpwave.tiles.ir import Op
from warpwave.tiles.simt.elementwise import wide
from warpwave.tiles.simt.writer import ctype


def lower_fma(lw: NvidiaLowering, op: Op) -> None:
    """One fused multiply-add for each element and k; neighbouring lanes read the same words of shared memory."""
    operands = [shared_operand(lw, op, axis) for axis in (0, 1)]
    layout, name = lw.layout(op.result), start_accumulator(lw, op)
    kind = ctype(op.result.tile.dtype)
    with lw.body.block(f"for (int k = 0; k < {depth_of(op)}; ++k)"):
        indices = []
        for operand, which in zip(operands, "ab", strict=True):
            places = list(dict.fromkeys(item[operand.axis] for item in layout.items))
            _values(lw, op, operand, which, places)
            indices.append(lw.table([places.index(item[operand.axis]) for item in layout.items]))
        with lw.body.each(len(layout.items)):
            values = f"a[{indices[0]}[i]], b[{indices[1]}[i]], {name}.get(i)"
            product = f"fma_({values})" if kind == "float" else "a[{}[i]] * b[{}[i]] + {}.get(i)".format(*indices, name)
            lw.body.line(f"{name}.set(i, {product});")


def _values(lw: NvidiaLowering, op: Op, operand: Operand, which: str, places: list[int]) -> None:
    base = lw.coordinates(lw.layout(op.result)).bases[operand.axis]
    kind = ctype(op.result.tile.dtype)
    lw.body.line(f"{kind} {which}[{len(places)}];")
    with lw.body.each(len(places)):
        address = operand.address(f"({base} + {lw.table(places)}[i])", "k")
        element = f"*(const {ctype(operand.dtype)} *)(smem + {address})"
        value = wide(element, operand.dtype) if operand.dtype.is_float else f"(int){element}"
        lw.body.line(f"{which}[i] = {value};")
