"""What the row-wise kernels cost: vector instructions that all waves execute for a row, from simulated launches.

The bounds are those of the best compiled kernels that we have for comparison (docs/amd.md): Triton 3.9's, HipKittens'.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from warpwave.backends.amd.backend import BACKEND
from warpwave.kernels.layernorm import dropout_residual_layernorm, layernorm
from warpwave.kernels.rotary import rotary
from warpwave.kernels.softmax import softmax
from warpwave.tiles.runtime.arrays import borrow

WIDE = {"buffer_load_dwordx4", "buffer_store_dwordx4"}


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(ml_dtypes.bfloat16)


def rows_of(names, count, columns):
    """Matrices, and vectors for the names that begin with a dot."""
    return {n.lstrip("."): random(columns) if n[0] == "." else random(count, columns) for n in names.split()}


def vector_instructions(kernel, target, arguments, **constants):
    """All that are executed in a launch; all accesses to memory are of 16 bytes."""
    ir = kernel.compile(**arguments, **constants, target="reference").ir
    wrapped = {n: borrow(a) if isinstance(a, np.ndarray) else a for n, a in arguments.items()}
    counts = BACKEND.compile(ir, f"amd:{target}", {}).simulate(wrapped).by_mnemonic()
    assert {n for n in counts if n.startswith(("buffer_", "global_", "flat_", "scratch_"))} == WIDE
    return sum(count for name, count in counts.items() if name.startswith("v_"))


AFFINE = "x y .weight .bias"
CASES = [
    (layernorm, "gfx950", 2048, AFFINE, 524),
    (layernorm, "gfx950", 8192, AFFINE, 1592),
    (layernorm, "gfx942", 2048, AFFINE, 692),
    (layernorm, "gfx942", 8192, AFFINE, 2248),
    (softmax, "gfx950", 2048, "x y", 912),
    (softmax, "gfx942", 2048, "x y", 1080),
]


@pytest.mark.parametrize(("kernel", "target", "columns", "names", "most"), CASES)
def test_a_row(kernel, target, columns, names, most):
    rows = 8  # no wave of a block is without work
    assert vector_instructions(kernel, target, rows_of(names, rows, columns)) / rows <= most


def test_a_row_of_layernorm_fused_with_dropout():
    """HipKittens' kernel has 1644 if it rounds by the target's instructions."""
    arguments = rows_of("x residual y total .weight .bias", 8, 2048) | {"seed": 1, "offset": 2}
    assert vector_instructions(dropout_residual_layernorm, "gfx950", arguments, p=0.1) / 8 <= 1644


def test_a_row_of_a_rotated_head():
    arguments = {"x": random(1, 4, 64, 128), "y": random(1, 4, 64, 128), "cos": random(64, 64), "sin": random(64, 64)}
    assert vector_instructions(rotary, "gfx950", arguments) / (4 * 64) <= 27
