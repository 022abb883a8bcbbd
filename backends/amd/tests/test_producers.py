"""Products whose tiles are loaded by waves of their own: right in any interleaving, and what such waves cost."""

from __future__ import annotations

from functools import lru_cache

import ml_dtypes
import numpy as np
import pytest

import warpwave as ww
from warpwave import bf16, f32, gl, rt, st
from warpwave.backends.amd.tests.harness import program
from warpwave.kernels.gemm import gemm
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.runtime.arrays import borrow

SCHEDULE = "producer-consumer"
BF16, FP8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
# rows, columns and depth of the tile, formats, whether depth runs along the rows of a and b, waves of both kinds
WANTED = {"narrow": ((128, 256, 64), BF16, (True, True), 8, 4), "wide": ((192, 256, 64), BF16, (True, True), 12, 4)}
MORE = {
    "fp8": ((128, 256, 128), FP8, (True, True), 8, 4),
    "depth down": ((128, 256, 64), BF16, (False, False), 8, 4),
    "depth down b": ((128, 256, 64), BF16, (True, False), 8, 4),
    "one producer": ((128, 128, 64), BF16, (True, True), 4, 1),
    "two producers": ((128, 128, 64), BF16, (False, True), 8, 2),
}


@lru_cache
def built(name):
    """The product of a case."""
    (rows, cols, depth), kind, along, waves, producers = {**WANTED, **MORE}[name]
    a, b = np.zeros((512, 512), kind), np.zeros((512, 512), kind)
    kernel = gemm.compile(
        a,
        b,
        np.zeros((512, 512), np.float32),
        np.zeros(512, np.float32),
        transpose_a=not along[0],
        transpose_b=along[1],
        BM=rows,
        BN=cols,
        BK=depth,
        target="reference",
    )
    return program(kernel.ir, "gfx950", schedule=SCHEDULE, waves=waves, producers=producers)


def launch(name, shape, seed):
    """Small integers, whose sums are exact, with a bias."""
    _, kind, along, *_ = {**WANTED, **MORE}[name]
    m, n, k = shape
    rng = np.random.default_rng(m + n + k)
    a = rng.integers(-3, 4, (m, k) if along[0] else (k, m)).astype(kind)
    b = rng.integers(-3, 4, (n, k) if along[1] else (k, n)).astype(kind)
    bias, c = rng.integers(-3, 4, n).astype(np.float32), np.zeros((m, n), np.float32)
    report = built(name).simulate({x: borrow(y) for x, y in {"a": a, "b": b, "c": c, "bias": bias}.items()}, seed=seed)
    left, right = (x.astype(np.float32) for x in (a if along[0] else a.T, b.T if along[1] else b))
    np.testing.assert_array_equal(c, left @ right + bias)
    return report


@pytest.mark.parametrize("name", [*WANTED, *(pytest.param(name, marks=pytest.mark.sweep) for name in MORE)])
def test_any_interleaving_and_any_depth(name):
    """Depths around whole steps and rounds, rows that end inside a tile."""
    for seed, shape in enumerate(((200, 256, 336), (192, 256, 64))):
        assert launch(name, shape, seed).bank_conflicts == 0


@pytest.mark.sweep
def test_rows_that_cannot_be_moved_16_bytes_at_a_time_go_by_the_default_schedule():
    for name in WANTED:
        launch(name, (40, 30, 257), 3)


def test_waves_that_only_load_take_registers_from_those_that_multiply():
    """16 waves share the 512 registers of each SIMD's lanes: 128 each, and 12 waves 168."""
    assert "a lane of either has 168 registers" in built("narrow").explain()
    assert "a lane of either has 128 registers" in built("wide").explain()
    mix = built("wide").resources["hot_loop"]["each_iteration"]
    assert (mix["barriers"], mix["mfma"]) == (4, 4 * 16)
    assert built("wide").resources["spills"] == 0


@ww.kernel
def summed(x: gl, w: gl, y: gl):
    """The result's columns are summed over waves after the loop."""
    i = ww.grid(ww.cdiv(x.rows, 128))
    acc = ww.zeros(rt[f32, 128, 128])
    for k in ww.pipeline(ww.cdiv(x.cols, 32)):
        acc = ww.mma_ABt(acc, ww.load(x, (i, k), st[bf16, 128, 32]), ww.load(w, (0, k), st[bf16, 128, 32]))
    ww.store(y, (i, 0), acc - ww.sum(acc, axis=0)[None, :])


@ww.kernel
def stores_first(x: gl, w: gl, y: gl):
    """Something is written before the loop."""
    i = ww.grid(ww.cdiv(x.rows, 128))
    acc = ww.zeros(rt[f32, 128, 128])
    ww.store(y, (i, 0), acc)
    for k in ww.pipeline(ww.cdiv(x.cols, 32)):
        acc = ww.mma_ABt(acc, ww.load(x, (i, k), st[bf16, 128, 32]), ww.load(w, (0, k), st[bf16, 128, 32]))
    ww.store(y, (i, 0), acc)


@pytest.mark.parametrize(
    ("kernel", "target", "options", "message"),
    [
        (summed, "gfx950", {}, "outside its loop waves exchange data"),
        (stores_first, "gfx950", {}, "`store` before the loop would happen twice"),
        (gemm, "gfx942", {}, "gfx942 cannot load 16 bytes a lane straight to LDS"),
        (gemm, "gfx950", {"BM": 256, "BN": 256}, "take 206 registers a lane, there are 168"),
        (gemm, "gfx950", {"producers": 3}, "are not the same number of whole instructions for all waves"),
        (gemm, "gfx950", {"schedule": "ping-pong", "producers": 4}, "schedule 'ping-pong' has no producers"),
    ],
)
def test_where_it_does_not_apply_the_reason_is_named(kernel, target, options, message):
    tile = {"transpose_b": True, "BM": 128, "BN": 128, **{k: v for k, v in options.items() if k in ("BM", "BN")}}
    spec = [np.zeros((256, 256), BF16)] * 2 + [np.zeros((256, 256), np.float32)]
    made = kernel.compile(*spec, **(tile if kernel is gemm else {}), target="reference")
    chosen = {name: value for name, value in options.items() if name not in tile}
    with pytest.raises(UnsupportedError) as caught:
        program(made.ir, target, **{"schedule": SCHEDULE, **chosen})
    assert message in str(caught.value)
