"""Gives every register tile of a kernel its layout, beginning with the products."""

from __future__ import annotations

from warpwave.backends.nvidia.arch import WARP
from warpwave.backends.nvidia.layout import accumulator_layout, operand_layout
from warpwave.backends.nvidia.plan import Plan
from warpwave.tiles.ir import Kernel, Value
from warpwave.tiles.simt.assign import Assigner, is_laid_out
from warpwave.tiles.simt.layout import Layout


def assign_layouts(kernel: Kernel, plan: Plan) -> dict[Value, Layout]:
    """A layout for every register tile and vector."""
    assigner = Assigner(kernel)
    for op, product in plan.products.items():
        rows, cols = op.result.tile.shape
        warpgroups = product.engine == "wgmma"
        assigner.give(op.result, accumulator_layout((rows, cols), plan.warps, product.over, warpgroups=warpgroups))
    for op, product in plan.products.items():
        a = op.operands[1]
        if product.engine != "fma" and is_laid_out(a) and a.tile.dtype.bits == 16 and not op.attrs["transpose_a"]:
            assigner.give(a, operand_layout(a.tile.shape[1], assigner.layouts[op.result]))
    return assigner.finish(WARP, plan.warps)
