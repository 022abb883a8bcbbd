"""Gives every register tile of a kernel its layout, beginning with the products."""

from __future__ import annotations

from warpwave.backends.amd.arch import WAVE
from warpwave.backends.amd.layout import accumulator_layout, operand_layout
from warpwave.backends.amd.plan import MmaPlan, Plan
from warpwave.tiles.ir import Kernel, Op, Value
from warpwave.tiles.simt.assign import Assigner, is_laid_out
from warpwave.tiles.simt.layout import Layout


def assign_layouts(kernel: Kernel, plan: Plan) -> dict[Value, Layout]:
    """A layout for every register tile and vector."""
    assigner = Assigner(kernel)
    assigner.give_all((op.result, _accumulator(op, choice, plan.waves)) for op, choice in plan.mmas.items())
    for op, choice in plan.mmas.items():
        a = op.operands[1]
        if is_laid_out(a) and not op.attrs["transpose_a"]:
            result = assigner.layouts[op.result]
            assigner.give(a, operand_layout(a.tile.shape, result, choice.mfma, a.tile.dtype.nbytes))
    return assigner.finish(WAVE, plan.waves)


def _accumulator(op: Op, choice: MmaPlan, waves: int) -> Layout:
    rows, cols = op.result.tile.shape
    return accumulator_layout((rows, cols), waves, choice.over, choice.mfma.m)
