"""Kernels of the language on the timing model: what `AmdProgram.time` runs and what it says about the user's lines."""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.backends.amd.backend import BACKEND
from warpwave.backends.amd.model.cu import Memory
from warpwave.kernels.softmax import softmax
from warpwave.tiles.runtime.arrays import borrow

ROWS, WIDTH = 4096, 256


@pytest.fixture(scope="module")
def rows():
    x, y = (np.zeros((ROWS, WIDTH), np.float32) for _ in range(2))
    program = BACKEND.compile(softmax.compile(x, y, target="reference").ir, "amd:gfx950", {})
    return program, {"x": borrow(x), "y": borrow(y)}


def test_only_the_workgroups_of_one_compute_unit_run(rows):
    program, arguments = rows
    timing = program.time(arguments, chip="MI350X")
    assert timing.clock == 2.2
    assert 1 <= len(timing.recorded.groups) < timing.recorded.report.grid[0]
    assert timing.recorded.groups[0] == 0
    assert timing.issued["vector"] > 0
    assert "modelled" in str(timing)


def test_named_workgroups_and_memory(rows):
    program, arguments = rows
    near = program.time(arguments, groups=[3])
    far = program.time(arguments, groups=[3], memory=Memory(0, 0))
    assert near.recorded.groups == (3,)
    assert far.clocks > near.clocks + 500  # a trip to HBM and back
    assert far.stalls()["vmcnt"] > near.stalls()["vmcnt"]


def test_waiting_is_laid_to_the_users_lines(rows):
    program, arguments = rows
    lines = program.time(arguments, groups=[0], memory=Memory(0, 0)).stalls_by_line()
    assert any("softmax.py:" in line for line in lines)
