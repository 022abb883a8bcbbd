"""This project's kernels on the AMD timing model, in the form of the table of published ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from warpwave.backends.amd.backend import BACKEND
from warpwave.backends.amd.model.cu import Memory
from warpwave.bench.amd_timing import Case, Row, row
from warpwave.kernels.gemm import gemm
from warpwave.tiles.runtime.arrays import borrow

DEPTH, SIZE = 8192, 256  # one workgroup's tile at the depth of the published products
MEMORY = Memory(l2=0.78, infinity_cache=0.93, loaded=True)  # as the cases of products have it
PRODUCTS = (
    ("gfx950", "MI355X", "bf16", ml_dtypes.bfloat16, 64, "multistage"),
    ("gfx950", "MI355X", "bf16", ml_dtypes.bfloat16, 64, "ping-pong"),
    ("gfx950", "MI355X", "fp8", ml_dtypes.float8_e4m3fn, 128, "ping-pong"),
    ("gfx942", "MI300X", "bf16", ml_dtypes.bfloat16, 64, "multistage"),
)


def own_rows() -> list[Row]:
    """All of them."""
    return list(_products())


def _products() -> Iterator[Row]:
    for target, chip, dtype, element, step, schedule in PRODUCTS:
        began = time.perf_counter()
        a, b = (np.zeros((SIZE, DEPTH), element) for _ in range(2))
        c = np.zeros((SIZE, SIZE), ml_dtypes.bfloat16)
        built = gemm.compile(a, b, c, transpose_b=True, BM=SIZE, BN=SIZE, BK=step, target="reference")
        program: Any = BACKEND.compile(built.ir, f"amd:{target}", {"schedule": schedule})
        timing = program.time({"a": borrow(a), "b": borrow(b), "c": borrow(c)}, chip=chip, dtype=dtype, memory=MEMORY)
        # The work of all compute units: this tile on each.
        flops = 2.0 * SIZE * SIZE * DEPTH * timing.chip.cus
        name = f"Warpwave {dtype} {SIZE}x{SIZE}x{step}, {schedule}, {target}"
        case = Case(name, "", (timing.chip.cus,), (64 * program.artifact.waves,), [], flops, dtype, None)
        yield row(case, timing.recorded, timing, time.perf_counter() - began)
