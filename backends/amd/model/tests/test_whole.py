"""Whole launches: the extrapolation against replays of products that are really that deep, and rounds that add up."""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np
import pytest

from warpwave.backends.amd.model.cu import Memory
from warpwave.backends.amd.model.rates import CALIBRATED
from warpwave.backends.amd.model.traffic import TileGemm
from warpwave.backends.amd.model.whole import WholeLaunch
from warpwave.kernels.gemm import gemm
from warpwave.tiles.runtime.arrays import borrow

TILE = 64


def arrays(depth):
    a, b = (np.zeros((TILE, depth), ml_dtypes.bfloat16) for _ in "ab")
    return {"a": a, "b": b, "c": np.zeros((TILE, TILE), ml_dtypes.bfloat16)}


@functools.cache
def program():
    tiles = {"BM": TILE, "BN": TILE, "BK": 64}
    return gemm.compile(**arrays(1024), transpose_b=True, target="amd:gfx950:sim", **tiles).program


@functools.cache
def recorded(depth):
    return program().time({n: borrow(a) for n, a in arrays(depth).items()}, groups=[0]).recorded


def launch(m, n, k):
    trips = [recorded(depth).timed().loop.iterations for depth in (1024, 2048)]
    per_k = (trips[1] - trips[0]) / 1024
    return WholeLaunch(recorded(1024), 1024, per_k, TileGemm(m, n, k, TILE, TILE), "bf16")


def test_a_deeper_product_takes_what_its_own_replay_takes():
    found = launch(TILE, TILE, 4096)
    phase = found.grid.phases[0]
    memory = Memory(1 - phase.past_l2 / phase.asked, 1 - phase.past_cache / phase.past_l2)
    deep = recorded(4096).timed("MI355X", dtype="bf16", memory=memory)
    assert found.microseconds - CALIBRATED.launch == pytest.approx(deep.seconds * 1e6, rel=0.03)


def test_rounds_add_up():
    one, three = (launch(16 * TILE, 16 * rounds * TILE, 1024) for rounds in (1, 3))
    assert [p.rounds for p in three.grid.phases] == [3]
    body = [x.microseconds - CALIBRATED.launch for x in (one, three)]
    assert 2.5 < body[1] / body[0] <= 3.05  # later rounds find more in the Infinity Cache
    assert three.tflops == pytest.approx(three.problem.flops / three.microseconds / 1e6)


def test_the_matrix_cores_are_less_busy_than_with_all_data_in_l2():
    assert 0 < launch(16 * TILE, 16 * TILE, 1024).matrix_busy < recorded(1024).timed("MI355X").loop.matrix_busy
