"""Gives every register tile of a kernel its layout, beginning with the products."""

from __future__ import annotations

from warpwave.backends.nvidia.arch import WARP
from warpwave.backends.nvidia.layout import accumulator_layout, operand_layout
from warpwave.backends.nvidia.plan import Plan, Product
from warpwave.tiles.ir import Kernel, Op, Value
from warpwave.tiles.simt.assign import Assigner, is_laid_out
from warpwave.tiles.simt.layout import Layout


def assign_layouts(kernel: Kernel, plan: Plan) -> dict[Value, Layout]:
    """A layout for every register tile and vector."""
    assigner = Assigner(kernel)
    assigner.give_all((op.result, _accumulator(op, product, plan.warps)) for op, product in plan.products.items())
    for op, product in plan.products.items():
        a = op.operands[1]
        if product.engine != "fma" and is_laid_out(a) and a.tile.dtype.bits == 16 and not op.attrs["transpose_a"]:
            assigner.give(a, operand_layout(a.tile.shape[1], assigner.layouts[op.result]))
    return assigner.finish(WARP, plan.warps)


def _accumulator(op: Op, product: Product, warps: int) -> Layout:
    rows, cols = op.result.tile.shape
    return accumulator_layout((rows, cols), warps, product.over, warpgroups=product.engine == "wgmma")
