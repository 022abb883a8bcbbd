"""Matrix products: operand fragments from shared memory or registers, and the MFMA calls.

The product is computed transposed, D^T = B^T A^T: the tile's b is the instruction's first operand.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpwave.backends.amd.arch import WAVE, Mfma
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.depth import depth_order
from warpwave.backends.amd.lower.operands import Operand, declare_fragments, read_fragments, take_step
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


@dataclass(frozen=True)
class Product:
    """One mma op: its instruction and operands; `in_registers` if the first is used as it lies in registers."""

    op: Op
    mfma: Mfma
    first: Operand
    second: Operand
    in_registers: bool

    @property
    def steps(self) -> int:
        """How many times fragments are read."""
        return len(self.first.order.merged)


def product_of(lw: AmdLowering, op: Op) -> Product:
    """What the plan and the layouts say of a product."""
    _, a, b = op.operands
    mfma, layout = lw.plan.mmas[op].mfma, lw.layout(op.result)
    depth = a.tile.shape[0 if op.attrs["transpose_a"] else 1]
    order, in_registers = depth_order(lw, op)
    rows = sorted({i[0] for i in layout.items})
    cols = sorted({i[1] // mfma.n * mfma.n for i in layout.items})
    first = Operand(op, "a", a, mfma, order, rows, depth, not op.attrs["transpose_a"])
    second = Operand(op, "b", b, mfma, order, cols, depth, bool(op.attrs["transpose_b"]))
    return Product(op, mfma, first, second, in_registers)


def lower_mma(lw: AmdLowering, op: Op) -> None:
    """All steps of the product, unrolled."""
    product = product_of(lw, op)
    _, a, b = op.operands
    a_shared = None if product.in_registers else lw.shared.get(a) or to_shared(lw, a)
    b_shared = lw.shared.get(b) or to_shared(lw, b)
    for shared in (a_shared, b_shared):
        if shared is not None:
            lw.before_shared_read(shared.region)
    begin(lw, product)
    with lw.body.each(product.steps, "s"):
        for operand, shared in ((product.first, a_shared), (product.second, b_shared)):
            declare_fragments(lw, operand)
            read_fragments(lw, operand, shared)
        multiply(lw, product)


def begin(lw: AmdLowering, product: Product) -> None:
    """Declare the result; it starts as the accumulator that is added to."""
    start = convert(lw, product.op.operands[0], lw.layout(product.op.result))
    name = lw.declare(product.op.result)
    lw.body.line(f"{name} = {start};")


def multiply(lw: AmdLowering, product: Product, row: int = 0, col: int = 0) -> None:
    """What fragments of step s add to the blocks of the result from block `row`, `col` on."""
    first, second = product.first, product.second
    blocks = len({i[1] // product.mfma.n for i in lw.layout(product.op.result).items})
    with lw.body.each(first.order.together, "p"):
        take_step(lw, first)
        take_step(lw, second)
        with lw.body.each(len(first.places), "m"), lw.body.each(len(second.places), "n"):
            m, n = (f"({name} + {start})" if start else name for name, start in (("m", row), ("n", col)))
            value = f"{lw.name(product.op.result)}.v[{m} * {blocks} + {n}]"
            lw.body.line(f"{value} = {_call(product.mfma, first, second, value)};")
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
