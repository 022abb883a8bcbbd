"""How products get their operands out of LDS, however they are stored: width of the accesses and bank conflicts."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

import warpwave as ww
from warpwave import f32, rt, st
from warpwave.backends.amd.backend import BACKEND
from warpwave.backends.amd.tests.harness import BOTH, launch, program
from warpwave.kernels.gemm import gemm
from warpwave.tiles.runtime.arrays import borrow
from warpwave.tiles.tests.reference_harness import captured

ROW_BYTES = {"gfx942": 64, "gfx950": 128}
FP8 = {"gfx942": ml_dtypes.float8_e4m3fnuz, "gfx950": ml_dtypes.float8_e4m3fn}
DEPTH = {2: 256, 1: 512, 4: 128}
# (of a wave in 128 bytes of depth, over all waves) 256 x 256 elements on 8 waves of 128 x 64: 24 reads of 16 bytes.
READS = {"ds_read_b128": 1, "ds_read_b64_tr_b16": 2, "ds_read_b64_tr_b8": 2, "ds_read2st64_b64": 1}


def run(target, dtype, ta, tb):
    dtype = np.dtype(dtype)
    depth = DEPTH[dtype.itemsize]
    rng = np.random.default_rng(4)
    a = rng.integers(-2, 3, (depth, 256) if ta else (256, depth)).astype(dtype)
    b = rng.integers(-2, 3, (256, depth) if tb else (depth, 256)).astype(dtype)
    c = np.zeros((256, 256), np.int32 if dtype.kind == "i" else np.float32)
    step = ROW_BYTES[target] // dtype.itemsize
    options = {"transpose_a": ta, "transpose_b": tb, "BM": 256, "BN": 256, "BK": step}
    kernel = gemm.compile(a, b, c, **options, target="reference").ir
    program = BACKEND.compile(kernel, f"amd:{target}", {"schedule": "multistage"})  # which reads nothing ahead in vain
    report = program.simulate({"a": borrow(a), "b": borrow(b), "c": borrow(c)})
    exact = (a.T if ta else a).astype(np.float64) @ (b.T if tb else b).astype(np.float64)
    np.testing.assert_array_equal(c, exact)
    return program, report


def assert_wide_and_free_of_conflicts(target, dtype, ta, tb):
    program, report = run(target, dtype, ta, tb)
    counts = report.by_mnemonic()
    reads = {name: n for name, n in counts.items() if name.startswith("ds_read")}
    assert set(reads) <= set(READS), reads
    whole = sum(n / READS[name] for name, n in reads.items())
    steps = DEPTH[np.dtype(dtype).itemsize] * np.dtype(dtype).itemsize // 128
    assert whole == 8 * 24 * steps
    writes = {name for name in counts if name.startswith("ds_write")}
    assert not writes & {"ds_write_b16", "ds_write_b8", "ds_write_b16_d16_hi", "ds_write_b8_d16_hi"}
    assert report.bank_conflicts == 0
    assert program.resources["spills"] == 0


@pytest.mark.parametrize(
    ("target", "dtype", "ta", "tb"),
    [
        ("gfx942", ml_dtypes.bfloat16, True, False),
        ("gfx942", np.int8, False, False),
        ("gfx950", FP8["gfx950"], True, False),
    ],
)
def test_any_storage_is_read_wide(target, dtype, ta, tb):
    assert_wide_and_free_of_conflicts(target, dtype, ta, tb)


EVERY = list(itertools.product(["gfx942", "gfx950"], ["bf16", "f16", "i8", "fp8"], [False, True], [False, True]))
EVERY.remove(("gfx950", "fp8", False, True))  # spills by multistage: it is why `auto` takes ping-pong there


@pytest.mark.sweep
@pytest.mark.parametrize(("target", "kind", "ta", "tb"), EVERY)
def test_every_storage_is_read_wide(target, kind, ta, tb):
    dtype = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "i8": np.int8, "fp8": FP8[target]}[kind]
    assert_wide_and_free_of_conflicts(target, dtype, ta, tb)


@pytest.mark.parametrize(
    ("rows", "depth", "dtype"),
    [(16, 128, ml_dtypes.bfloat16), (48, 32, ml_dtypes.bfloat16), (16, 128, np.int8), (32, 64, np.int8)],
)
def test_rows_shorter_than_the_banks_are_wide(rows, depth, dtype):
    """The swizzle then moves among neighbouring rows, which direct loads and transposing reads must agree about."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(rows)
    a, b = (rng.integers(-2, 3, (2 * depth, rows)).astype(dtype) for _ in range(2))
    c = np.zeros((rows, rows), np.int32 if dtype.kind == "i" else np.float32)
    ir = gemm.compile(a, b, c, transpose_a=True, BM=rows, BN=rows, BK=depth, target="reference").ir
    BACKEND.compile(ir, "amd:gfx950", {}).simulate({"a": borrow(a), "b": borrow(b), "c": borrow(c)})
    np.testing.assert_array_equal(c, a.astype(np.float64).T @ b.astype(np.float64))


def both_ways(x, y, o, *, R, C):
    """o = y x^T x: x's rows are summed over once along their length and once across."""
    for _ in ww.pipeline(1):
        tile = ww.load(x, (0, 0), st[x.dtype, R, C])
        first = ww.mma_ABt(ww.zeros(rt[f32, 16, R]), ww.load(y, (0, 0), rt[x.dtype, 16, C]), tile)
        ww.store(o, (0, 0), ww.mma_AB(ww.zeros(rt[f32, 16, C]), ww.cast(first, x.dtype), tile))


@pytest.mark.parametrize("shape", [(64, 64), (64, 32)], ids=str)
@pytest.mark.parametrize("target", BOTH)
def test_a_tile_that_is_read_both_ways(target, shape):
    rng = np.random.default_rng(7)
    x, y = (rng.integers(-1, 2, (n, shape[1])).astype(ml_dtypes.bfloat16) for n in (shape[0], 16))
    arguments = {"x": x, "y": y, "o": np.zeros((16, shape[1]), np.float32)}
    kernel = captured(both_ways, arguments, R=shape[0], C=shape[1])
    got = launch(program(kernel, target), arguments)["o"]
    np.testing.assert_array_equal(got, y.astype(np.float64) @ x.astype(np.float64).T @ x.astype(np.float64))
