"""This project's kernels on the AMD timing model, in the form of the table of published ones."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from warpwave.backends.amd.backend import BACKEND
from warpwave.backends.amd.model.cu import Memory
from warpwave.bench.amd_timing import Case, Row, row
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm
from warpwave.tiles.errors import TileError
from warpwave.tiles.runtime.arrays import borrow

DEPTH, SIZE = 8192, 256  # one workgroup's tile at the depth, or the number of keys, of the published kernels
PRODUCT = Memory(l2=0.78, infinity_cache=0.93, loaded=True)  # as the published cases have it
ATTENTION = Memory(l2=0.9, infinity_cache=0.9, loaded=True)
BF16 = ml_dtypes.bfloat16
PRODUCTS = (
    ("gfx950", "bf16", BF16, 64, "multistage"),
    ("gfx950", "bf16", BF16, 64, "ping-pong"),
    ("gfx950", "bf16", BF16, 64, "interleave"),
    ("gfx950", "fp8", ml_dtypes.float8_e4m3fn, 128, "ping-pong"),
    ("gfx942", "bf16", BF16, 64, "multistage"),
)
ATTENTIONS = ((128, "multistage"), (128, "ping-pong"), (64, "multistage"), (64, "ping-pong"))
CHIPS = {"gfx950": "MI355X", "gfx942": "MI300X"}


def own_rows() -> list[Row]:
    """All of them; schedules that do not apply to a kernel are left out."""
    return [*_products(), *_attentions()]


def _products() -> Iterator[Row]:
    for target, dtype, element, step, schedule in PRODUCTS:
        a, b = (np.zeros((SIZE, DEPTH), element) for _ in range(2))
        c = np.zeros((SIZE, SIZE), BF16)
        built = gemm.compile(a, b, c, transpose_b=True, BM=SIZE, BN=SIZE, BK=step, target="reference")
        name = f"Warpwave {dtype} {SIZE}x{SIZE}x{step}, {schedule}, {target}"
        flops = 2.0 * SIZE * SIZE * DEPTH
        yield from _timed(name, built.ir, target, schedule, dtype, {"a": a, "b": b, "c": c}, flops, PRODUCT)


def _attentions() -> Iterator[Row]:
    for width, schedule in ATTENTIONS:
        q, o = (np.zeros((1, 1, SIZE, width), BF16) for _ in range(2))
        k, v = (np.zeros((1, 1, DEPTH, width), BF16) for _ in range(2))
        arguments = {"q": q, "k": k, "v": v, "o": o, "lse": np.zeros((1, 1, SIZE), np.float32)}
        built = attention.compile(*arguments.values(), BQ=SIZE, BK=64, target="reference")
        name = f"Warpwave attention forward D={width}, {schedule}, gfx950"
        flops = 4.0 * SIZE * DEPTH * width
        yield from _timed(name, built.ir, "gfx950", schedule, "bf16", arguments, flops, ATTENTION)


def _timed(
    name: str,
    kernel: Any,
    target: str,
    schedule: str,
    dtype: str,
    arrays: Mapping[str, np.ndarray[Any, Any]],
    flops: float,
    memory: Memory,
) -> Iterator[Row]:
    """One workgroup's work of `flops`, taken to be the same on every compute unit."""
    began = time.perf_counter()
    try:
        program: Any = BACKEND.compile(kernel, f"amd:{target}", {"schedule": schedule})
    except TileError as error:
        print(f"{name}: {str(error).splitlines()[0]}")
        return
    borrowed = {n: borrow(a) for n, a in arrays.items()}
    timing = program.time(borrowed, chip=CHIPS[target], dtype=dtype, memory=memory)
    cus = timing.chip.cus
    case = Case(name, "", (cus,), (64 * program.artifact.waves,), [], flops * cus, dtype, None)
    yield row(case, timing.recorded, timing, time.perf_counter() - began)
