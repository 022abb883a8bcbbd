"""Loops that a schedule does not suit: warps that wait for each other, values that come too early, blocks in windows."""

from __future__ import annotations

import re

import pytest

import warpwave as ww
from warpwave import bf16, cdiv, f32, gl, rt, st, to_shared
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm

X = ww.spec("bf16[512,512]")


@ww.kernel
def with_barrier(a: gl, b: gl, c: gl, *, WAITS):
    acc = ww.zeros(rt[f32, 128, 128])
    m, n = ww.grid(cdiv(c.rows, 128), cdiv(c.cols, 128))
    for k in ww.pipeline(cdiv(a.cols, 64)):
        left = ww.load(a, (m, k), st[a.dtype, 128, 64])
        right = ww.load(b, (n, k), st[b.dtype, 128, 64])
        if WAITS:
            ww.barrier()
        acc = ww.mma_ABt(acc, left, right)
    ww.store(c, (m, n), acc)


@pytest.mark.parametrize("waits", [False, True])
def test_no_warpgroup_lags_where_all_wait_for_each_other(waits):
    built = with_barrier.compile(X, X, X, WAITS=waits, target="nvidia:sm90a")
    assert ("lag_begun" in built.source) == (not waits)


@ww.kernel
def rescaled(q: gl, k: gl, v: gl, o: gl, *, MOVED):
    """Two products of a loop, the first one's operand scaled and, if MOVED, written to shared memory."""
    m = ww.grid(cdiv(q.rows, 192))
    acc = ww.zeros(rt[f32, 192, 64])
    for n in ww.pipeline(cdiv(k.rows, 64)):
        kt = ww.load(k, (n, 0), st[bf16, 64, 64])
        vt = ww.load(v, (n, 0), st[bf16, 64, 64])
        scaled = ww.load(q, (m, 0), rt[bf16, 192, 64]) * 2
        if MOVED:
            scores = ww.mma_ABt(ww.zeros(rt[f32, 192, 64]), to_shared(scaled), kt)
        else:
            scores = ww.mma_ABt(ww.zeros(rt[f32, 192, 64]), scaled, kt)
        acc = acc * 0.5
        acc = ww.mma_AB(acc, ww.cast(scores, bf16), vt)
    ww.store(o, (m, 0), acc)


@pytest.mark.parametrize("moved", [False, True])
def test_no_turns_where_warps_wait_for_shared_memory(moved):
    options = {"warps": 12, "turns": True, "allow_spills": True}
    built = rescaled.compile(*[ww.spec("bf16[384,64]")] * 4, MOVED=moved, target="nvidia:sm90a", options=options)
    assert bool(re.search(r"group<\d+>::sync\(\d+ \+ warp_id / 4", built.source)) == (not moved)


@ww.kernel
def decayed(q: gl, k: gl, v: gl, o: gl, *, EARLY):
    """A carried accumulator that decays in each step, before or after the step's first product."""
    m = ww.grid(cdiv(q.rows, 128))
    qt = ww.load(q, (m, 0), st[bf16, 128, 64])
    acc = ww.zeros(rt[f32, 128, 64])
    for n in ww.pipeline(cdiv(k.rows, 64)):
        kt = ww.load(k, (n, 0), st[bf16, 64, 64])
        vt = ww.load(v, (n, 0), st[bf16, 64, 64])
        if EARLY:
            acc = acc * 0.5
        scores = ww.mma_ABt(ww.zeros(rt[f32, 128, 64]), qt, kt)
        if not EARLY:
            acc = acc * 0.5
        acc = ww.mma_AB(acc, ww.cast(scores, bf16), vt)
    ww.store(o, (m, 0), acc)


@pytest.mark.parametrize("early", [False, True])
def test_no_product_is_late_whose_result_is_read_before_the_first_one(early):
    built = decayed.compile(*[ww.spec("bf16[512,64]")] * 4, EARLY=early, target="nvidia:sm90a")
    assert ("held" in built.source) == (not early)


@ww.kernel
def triangular(a: gl, b: gl, c: gl):
    m, n = ww.grid(cdiv(c.rows, 128), cdiv(c.cols, 128))
    acc = ww.zeros(rt[f32, 128, 128])
    for k in ww.pipeline(n + 1):
        acc = ww.mma_ABt(acc, ww.load(a, (m, k), st[a.dtype, 128, 128]), ww.load(b, (n, k), st[b.dtype, 128, 128]))
    ww.store(c, (m, n), acc)


def test_blocks_of_unequal_length_in_windows_are_compiled():
    built = triangular.compile(X, X, X, target="nvidia:sm90a")
    assert "in windows" in built.explain()
    assert built.resources["spills"] == 0


@ww.kernel
def from_before_the_first_column(a: gl, b: gl, c: gl, *, SHIFT):
    acc = ww.zeros(rt[f32, 64, 64])
    m, n = ww.grid(cdiv(c.rows, 64), cdiv(c.cols, 64))
    for k in ww.pipeline(cdiv(a.cols, 64)):
        left = ww.load(a, (m * 64, k * 64 + SHIFT), st[a.dtype, 64, 64], unit="element")
        right = ww.load(b, (n * 64, k * 64 + SHIFT), st[b.dtype, 64, 64], unit="element")
        acc = ww.mma_ABt(acc, left, right)
    ww.store(c, (m, n), acc)


@pytest.mark.parametrize("shift", [0, 32, -32])
def test_rows_are_not_copied_by_units_from_before_their_start(shift):
    built = from_before_the_first_column.compile(X, X, X, SHIFT=shift, target="nvidia:sm90a")
    assert ("shift_units" in built.source) == (shift >= 0)


@pytest.mark.parametrize("options", [{"lag": -1}, {"blocks": 0}, {"window": 0}, {"cluster": 0}])
def test_options_that_mean_nothing(options):
    ((name, value),) = options.items()
    with pytest.raises(ww.UnsupportedError, match=f"there is no {name}={value}"):
        gemm.compile(X, X, X, transpose_b=True, target="nvidia:sm90a", options=options)


def test_a_window_is_at_least_one_cluster():
    built = gemm.compile(
        X, X, X, transpose_b=True, target="nvidia:sm90a", BM=128, BN=128, options={"window": 1, "cluster": 2}
    )
    assert "windowed_place(block_id, " in built.source
    assert ", 0)" not in re.search(r"windowed_place\(.*\);", built.source)[0]


def test_attention_still_has_its_schedules():
    x = ww.spec("bf16[1,2,1024,64]")
    built = attention.compile(x, x, x, x, target="nvidia:sm90a", causal=True)
    assert "held" in built.source
