"""Warpwave's own GEMM as machine code, and its workgroups on one compute unit recorded for the timing model."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from warpwave.backends.amd.model.timing import Recorded
from warpwave.backends.amd.model.traffic import TileGemm
from warpwave.backends.amd.program import AmdProgram
from warpwave.kernels.gemm import gemm
from warpwave.tiles.errors import TileError
from warpwave.tiles.runtime.arrays import borrow

# e4m3 in the target's own flavour.
DTYPES = {
    "gfx942": {"bf16": ml_dtypes.bfloat16, "fp8": ml_dtypes.float8_e4m3fnuz},
    "gfx950": {"bf16": ml_dtypes.bfloat16, "fp8": ml_dtypes.float8_e4m3fn},
}


def built(
    target: str, dtype: str, problem: TileGemm, schedule: str, *, transpose_b: bool = True, spills: bool = False
) -> AmdProgram | None:
    """The product's code by a schedule; None where that does not apply to these tiles."""
    arrays = _arrays(target, dtype, problem, problem.step, 1, transpose_b)
    tiles = {"BM": problem.block_m, "BN": problem.block_n, "BK": problem.step}
    options = {"schedule": schedule, "allow_spills": spills}
    try:
        found = gemm.compile(**arrays, transpose_b=transpose_b, target=f"amd:{target}:sim", options=options, **tiles)
    except TileError:
        return None
    assert isinstance(found.program, AmdProgram)
    return found.program


def recorded(
    program: AmdProgram, dtype: str, problem: TileGemm, depth: int, groups: int, *, transpose_b: bool = True
) -> Recorded:
    """So many workgroups of a product of this depth, which share a compute unit."""
    arrays = _arrays(program.target.name, dtype, problem, depth, groups, transpose_b)
    return program.time({name: borrow(a) for name, a in arrays.items()}, groups=list(range(groups))).recorded


def fitting(alone: Recorded) -> int:
    """Workgroups that one compute unit holds."""
    return alone.report.occupancy * alone.target.simds_per_cu // alone.report.waves_per_group


def _arrays(target: str, dtype: str, problem: TileGemm, depth: int, groups: int, transpose_b: bool) -> dict[str, Any]:
    rows, kind = groups * problem.block_m, DTYPES[target][dtype]
    b = (problem.block_n, depth) if transpose_b else (depth, problem.block_n)
    c = np.zeros((rows, problem.block_n), ml_dtypes.bfloat16)
    return {"a": np.zeros((rows, depth), kind), "b": np.zeros(b, kind), "c": c}
