"""Matrix products: operand fragments from shared memory or registers, and the MFMA calls.

The product is computed transposed, D^T = B^T A^T: the tile's b is the instruction's first operand.
"""

from __future__ import annotations

from warpwave.backends.amd.arch import WAVE, Mfma
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.depth import depth_order
from warpwave.backends.amd.lower.operands import Operand, read_fragments, take_step
from warpwave.tiles.dtypes import DType, f16
from warpwave.tiles.ir import Op
from warpwave.tiles.simt.convert import convert
from warpwave.tiles.simt.shared import to_shared
from warpwave.tiles.simt.writer import ctype


def fragment_type(dtype: DType, per_lane: int) -> str:
    """The C type that the MFMA builtin takes."""
    if dtype.name == "f32":
        return "float"
    if dtype.nbytes == 1:
        return {8: "long", 16: "vec<int, 4>", 32: "vec<int, 8>"}[per_lane]
    element = "short" if dtype.name == "bf16" and per_lane == 4 else ctype(dtype)
    return f"vec<{element}, {per_lane}>"


def lower_mma(lw: AmdLowering, op: Op) -> None:
    """All steps of the product, unrolled."""
    acc, a, b = op.operands
    mfma, layout = lw.plan.mmas[op].mfma, lw.layout(op.result)
    depth = a.tile.shape[0 if op.attrs["transpose_a"] else 1]
    order, in_registers = depth_order(lw, op)
    a_shared = None if in_registers else lw.shared.get(a) or to_shared(lw, a)
    b_shared = lw.shared.get(b) or to_shared(lw, b)
    for shared in (a_shared, b_shared):
        if shared is not None:
            lw.before_shared_read(shared.region)
    start = convert(lw, acc, layout)
    name = lw.declare(op.result)
    lw.body.line(f"{name} = {start};")
    rows = sorted({i[0] for i in layout.items})
    cols = sorted({i[1] // mfma.n * mfma.n for i in layout.items})
    first = Operand(op, "a", a, mfma, order, rows, depth, not op.attrs["transpose_a"])
    second = Operand(op, "b", b, mfma, order, cols, depth, bool(op.attrs["transpose_b"]))
    with lw.body.each(len(order.merged), "s"):
        read_fragments(lw, first, a_shared)
        read_fragments(lw, second, b_shared)
        with lw.body.each(order.together, "p"):
            take_step(lw, first)
            take_step(lw, second)
            with lw.body.each(len(rows), "m"), lw.body.each(len(cols), "n"):
                value = f"{name}.v[m * {len(cols)} + n]"
                lw.body.line(f"{value} = {_call(mfma, first, second, value)};")
            if first.is_widened or second.is_widened:
                lw.body.line("finish_first();")


def _call(mfma: Mfma, first: Operand, second: Operand, value: str) -> str:
    """The instruction with the tile's b as its first operand, for block m, n and, of steps read together, p."""
    a, b = first.dtype, second.dtype
    left, right = _fragment(mfma, second, "n"), _fragment(mfma, first, "m")
    if mfma.mnemonic.endswith("f8f6f4"):
        code = {"fp8e4m3": 0, "fp8e5m2": 1}
        return f"{mfma.builtin}({left}, {right}, {value}, {code[b.name]}, {code[a.name]}, 0, 0, 0, 0)"
    return f"{mfma.builtin}({left}, {right}, {value}, 0, 0, 0)"


def _fragment(mfma: Mfma, operand: Operand, block: str) -> str:
    per_lane, dtype = mfma.k * mfma.m // WAVE, f16 if operand.is_widened else operand.dtype
    return f"bits<{fragment_type(dtype, per_lane)}>({operand.which}_step[{block}])"
