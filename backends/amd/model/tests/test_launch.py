"""Modelled launches of any kernel, which is what `ww.autotune` measures with where there is no device."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import warpwave as ww
from warpwave import bf16, cdiv, f32, gl, rt, st
from warpwave.backends.amd.model.launch import launch_time, version
from warpwave.backends.amd.model.rates import CALIBRATED
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.runtime.arrays import borrow


@ww.kernel
def triangle(x: gl[f32], y: gl[f32]):
    """Row i is the sum of the rows up to row i / 256: the later a block, the more work."""
    i = ww.grid(x.rows)
    total = ww.zeros(rt[f32, 1, 64])
    for j in range(i // 256):
        total = total + ww.load(x, (j, 0), rt[f32, 1, 64])
    ww.store(y, (i, 0), total)


def body(rows):
    """Microseconds of a launch of so many rows, without what every launch takes."""
    x, y = (np.zeros((rows, 64), np.float32) for _ in range(2))
    program = triangle.compile(x, y, target="amd:gfx950:sim").program
    measured = launch_time(program, {"x": borrow(x), "y": borrow(y)})
    assert measured.how == "modelled on MI355X"
    return measured.seconds * 1e6 - CALIBRATED.launch


def test_all_rounds_count_by_their_own_work():
    """32 workgroups of one wave fit a compute unit; blocks of a later round do more, on average half the last one's."""
    one, four = body(8192), body(4 * 8192)
    assert one > 0
    assert four > 4 * 1.5 * one


def test_no_blocks_have_no_time():
    x = np.zeros((0, 64), np.float32)
    program = triangle.compile(x, x, target="amd:gfx950:sim").program
    with pytest.raises(UnsupportedError, match="a launch of no blocks"):
        launch_time(program, {"x": borrow(x), "y": borrow(x)})


CONFIGS = [ww.Config(BM=16), ww.Config(BM=64), ww.Config(options={"schedule": "ping-pong", "waves": 4})]


@ww.autotune(CONFIGS)
@ww.kernel
def product(a: gl, b: gl, c: gl, *, BM=32, BK=64):
    """c = a b^T."""
    m, n = ww.grid(cdiv(c.rows, BM), cdiv(c.cols, BM))
    acc = ww.zeros(rt[f32, BM, BM])
    for k in ww.pipeline(cdiv(a.cols, BK)):
        a_tile = ww.load(a, (m, k), st[bf16, BM, BK])
        b_tile = ww.load(b, (n, k), st[bf16, BM, BK])
        acc = ww.mma_ABt(acc, a_tile, b_tile)
    ww.store(c, (m, n), acc)


def test_a_kernel_is_tuned_by_the_model_and_computes_right():
    """A small product is done sooner by more blocks; the schedule that was asked for refuses these tiles."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (64, 256)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    small, large, refused = product.tuning(a, b, c, target="amd:gfx950:sim").trials
    assert small.seconds < large.seconds
    assert "it needs 8 waves, there are 4" in refused.why
    product(a, b, c, target="amd:gfx950:sim")
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
    explained = product.compile(a, b, c, target="amd:gfx950:sim").explain()
    assert "BM = 16 (tuned)\n" in explained
    assert "  configurations, modelled on MI355X\n  * BM=16: " in explained


def test_the_version_is_of_the_models_sources():
    assert len(version()) == 64
