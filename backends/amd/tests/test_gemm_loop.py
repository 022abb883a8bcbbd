"""What a step of depth 64 of the 256 x 256 product costs a wave by the multistage schedule, from two simulated launches."""

from __future__ import annotations

from collections import Counter

import ml_dtypes
import numpy as np
import pytest

from warpwave.backends.amd.backend import BACKEND
from warpwave.kernels.gemm import gemm
from warpwave.tiles.runtime.arrays import borrow

WAVES = 8


def launch(target, depth):
    rng = np.random.default_rng(depth)
    a, b = (rng.integers(-3, 4, (256, depth)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.zeros((256, 256), np.float32)
    compiled = gemm.compile(a, b, c, transpose_b=True, BM=256, BN=256, BK=64, target="reference")
    program = BACKEND.compile(compiled.ir, f"amd:{target}", {"schedule": "multistage"})
    report = program.simulate({"a": borrow(a), "b": borrow(b), "c": borrow(c)})
    assert (c == a.astype(np.float32) @ b.astype(np.float32).T).all()  # small integers: exact
    return program, report


@pytest.fixture(scope="module")
def gfx950():
    return launch("gfx950", 1024), launch("gfx950", 1536)


@pytest.fixture(scope="module")
def step(gfx950):
    """Executed instructions of one wave in one step of depth 64."""
    (_, short), (_, long) = gfx950
    counts = Counter(long.by_mnemonic())
    counts.subtract(short.by_mnemonic())
    steps = (1536 - 1024) // 64
    return {name: n / (steps * WAVES) for name, n in counts.items() if n}


def test_only_full_rate_matrix_instructions(step):
    """32 of 32x32x16 are as much work as the 64 of 16x16x32 that HipKittens' loop has."""
    assert {name: n for name, n in step.items() if "mfma" in name} == {"v_mfma_f32_32x32x16_bf16": 32}


def test_16_byte_reads_and_direct_loads_only(step):
    memory = {name: n for name, n in step.items() if name.startswith(("ds_", "buffer_", "global_", "scratch_"))}
    assert memory == {"ds_read_b128": 24, "buffer_load_dwordx4": 8}


def test_no_vector_work_besides(step):
    assert [name for name in step if name.startswith("v_") and "mfma" not in name] == []


def test_scalar_work_and_barriers(step):
    """HipKittens' loop has 8 barriers and 28 scalar instructions."""
    scalar = sum(
        n for name, n in step.items() if name.startswith("s_") and name not in ("s_waitcnt", "s_barrier", "s_nop")
    )
    assert step["s_barrier"] == 2
    assert scalar <= 11


def test_no_wait_drains_the_loads_in_flight(gfx950):
    """In the steady state each wait leaves two later stages in flight; only the last iterations wait for all."""
    (_, short), (_, long) = gfx950

    def drains(report):
        waits = (line for line in report.listing_lines if line.text.startswith("s_waitcnt"))
        return sum(line.executed for line in waits if "vmcnt(0)" in line.text)

    assert drains(long) == drains(short)


@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_registers_and_conflicts(target):
    program, report = launch(target, 256)
    assert program.resources["spills"] == program.resources["scratch_bytes"] == 0
    assert "v_accvgpr" not in program.asm
    assert program.resources["vgprs"] <= 236
    if target == "gfx950":
        assert report.bank_conflicts == 0
