"""What 64 keys cost a wave of attention, from two simulated launches of different length, beside HipKittens' loops."""

from __future__ import annotations

from collections import Counter

import ml_dtypes
import numpy as np
import pytest

from warpwave.kernels.attention import attention
from warpwave.tiles.runtime.arrays import borrow

SHORT, LONG = 512, 1024


def launch(width, keys):
    rng = np.random.default_rng(keys)
    names = {"q": 128, "k": keys, "v": keys, "o": 128}
    arrays = {n: rng.standard_normal((1, 1, rows, width)).astype(ml_dtypes.bfloat16) for n, rows in names.items()}
    program = attention.compile(**arrays, BQ=128, target="amd:gfx950:sim").program
    return program, program.simulate({n: borrow(a) for n, a in arrays.items()})


@pytest.fixture(scope="module", params=[64, 128])
def step(request):
    """The width, and the executed instructions of one wave for 64 keys by name."""
    program, short = launch(request.param, SHORT)
    _, long = launch(request.param, LONG)
    assert program.resources["spills"] == program.resources["scratch_bytes"] == long.bank_conflicts == 0
    counts = Counter(long.by_mnemonic())
    counts.subtract(short.by_mnemonic())
    waves, steps = program.artifact.waves, (LONG - SHORT) // 64
    return request.param, {name: n / (steps * waves) for name, n in counts.items() if n}


def count(step, prefix):
    return sum(n for name, n in step.items() if name.startswith(prefix) and "mfma" not in name)


def test_matrix_and_memory_instructions_are_those_of_hipkittens(step):
    """A wave has 32 queries; it loads twice as much as in HipKittens' blocks of 8 waves."""
    width, executed = step
    parts = width // 64
    assert executed["v_mfma_f32_32x32x16_bf16"] == 16 * parts
    memory = {n: executed[n] for n in executed if n.startswith(("ds_", "buffer_", "global_", "scratch_"))}
    assert memory == {"ds_read_b128": 8 * parts, "ds_read_b64_tr_b16": 16 * parts, "buffer_load_dwordx4": 4 * parts}


def test_vector_instructions(step):
    """HipKittens' loops have 155 and 171 where they rescale the accumulator, as this one always does; 135 where not."""
    width, executed = step
    assert count(executed, "v_") <= {64: 135, 128: 171}[width]


def test_scalar_instructions_and_barriers(step):
    """HipKittens has 4 barriers, and 12 and 18 scalar instructions in loops of 256 keys; here a step has 128 or 64."""
    width, executed = step
    assert executed["s_barrier"] <= 1
    scalar = count(executed, "s_") - count(executed, ("s_waitcnt", "s_barrier", "s_nop"))
    assert scalar <= {64: 12, 128: 26}[width]
