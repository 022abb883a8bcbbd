"""Loops, branches and pipelines: what they carry, and loads that run ahead."""

from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave.backends.amd.tests.harness import BOTH, agree, launch, program
from warpwave.backends.amd.tests.test_ops_tiles import blank, numbers
from warpwave.tiles.dtypes import bf16, f32, i32
from warpwave.tiles.tests.reference_harness import captured
from warpwave.tiles.types import TileType

T = TileType(f32, (8, 24))


def loops(x, y, n, start, *, step):
    """Swaps, nested loops with a run-time count, steps down, a loop within a branch."""
    a, b = ww.load(x, (0, 0), T), ww.load(x, (1, 0), T)
    total = ww.zeros(T)
    for i in ww.range(n):
        a, b = b, a + 1.0
        for j in ww.range(start, 0, step):
            total = total + a * ww.cast(i * 10 + j, f32)
        if i % 2 == 1:
            total, a = total + b, total
    ww.store(y, (0, 0), a)
    ww.store(y, (1, 0), b)
    ww.store(y, (2, 0), total)


@pytest.mark.parametrize(("n", "start", "step"), [(0, 5, -2), (1, 0, -1), (5, 7, -3), (4, -3, 2)])
def test_loops_and_branches(n, start, step):
    arguments = {"x": numbers(f32, 16, 24), "y": blank(f32, 24, 24), "n": n, "start": start}
    agree(captured(loops, arguments, step=step), arguments, ["gfx942"])


def ranges(out, start, stop, *, step):
    """Counters at the ends of i32."""
    count, last = ww.cast(0, i32), ww.cast(-7, i32)
    for i in ww.range(start, stop, step):
        count, last = count + 1, i
    ww.store(out, (0,), count, unit="element")
    ww.store(out, (1,), last, unit="element")


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(0, 5, 2), (5, 0, -2), (3, 3, 1), (4, 3, 1), (2**31 - 5, 2**31 - 1, 3), (-(2**31) + 5, -(2**31), -3)],
)
def test_counters_do_not_wrap(start, stop, step):
    arguments = {"out": blank(i32, 2), "start": start, "stop": stop}
    agree(captured(ranges, {**arguments, "start": 1, "stop": 1}, step=step), arguments, ["gfx950"])


def whiles(x, y, limit):
    """A while with carried tiles and a condition that a reduction decides; an if whose branches differ."""
    t, steps = ww.load(x, (0, 0), T), ww.cast(0, i32)
    while ww.max(ww.max(t, axis=1), axis=0) < limit:
        t, steps = t + t, steps + 1
    if steps > 3:
        t = t.T.T + 1.0
    elif steps > 1:
        t = t * 2.0
    ww.store(y, (0, 0), t + ww.cast(steps, f32))


@pytest.mark.parametrize("limit", [-1.0, 3.0, 100.0])
def test_while_and_elif(limit):
    arguments = {"x": np.abs(numbers(f32, 8, 24)) / 2 + 0.1, "y": blank(f32, 8, 24), "limit": limit}
    agree(captured(whiles, arguments), arguments, ["gfx942"])


def tile_order(x, y, n):
    """A loop that carries a tile which products and reductions lay out differently."""
    acc, column = ww.zeros(TileType(f32, (32, 32))), ww.zeros(TileType(f32, (32,)))
    for i in ww.range(n):
        t = ww.load(x, (0, i), TileType(bf16, (32, 32)))
        acc = ww.mma_ABt(acc, t, t)
        column = column + ww.max(acc, axis=0) - ww.sum(acc.T, axis=0)
    ww.store(y, (0, 0), acc + column[:, None] - column[None, :])


def test_carried_values_keep_their_layout():
    arguments = {"x": numbers(bf16, 32, 64), "y": blank(f32, 32, 32), "n": 2}
    agree(captured(tile_order, arguments), arguments)


# -- pipelines -----------------------------------------------------------------------------------------


def pipeline(x, w, y, n, *, stages, R, C, fill):
    """Three loads an iteration, one of them of the block after and one of the block before; a sum that shows all."""
    total, before = ww.zeros(TileType(f32, (R, C))), ww.zeros(TileType(f32, (R,)))
    for k in ww.pipeline(n, stages=stages):
        a = ww.load(x, (0, k + 1), TileType(x.dtype, (R, C), "shared"), fill=fill)
        b = ww.load(w, (k - 1, 0), TileType(w.dtype, (R, C), "shared"))
        c = ww.load(x, (0, 2 * k), TileType(x.dtype, (R, C), "shared"), unit="element")
        scale = ww.cast(k + 1, f32)
        total = total + ww.cast(ww.load(a), f32) * scale + ww.cast(ww.load(b), f32) - ww.cast(ww.load(c), f32)
        before = before + ww.sum(total, axis=1)
    ww.store(y, (0, 0), total + before[:, None])


def pipeline_arguments(dtype, n, r, c, columns):
    return {
        "x": numbers(dtype, r, columns),
        "w": numbers(dtype, 3 * r, c, seed=1),
        "y": blank(f32, r, c),
        "n": n,
    }


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_pipelines_of_any_trip_count(stages, target):
    """Of wide rows and of odd ones, with fills of 0 and of 2: the same code for all trip counts."""
    for fill, columns in ((0, 160), (2, 160), (0, 163)):
        example = pipeline_arguments(bf16, 1, 16, 32, columns)
        kernel = captured(pipeline, example, stages=stages, R=16, C=32, fill=fill)
        for n in (0, 1, 2, 3, 7) if fill == 0 else (3,):
            agree(kernel, pipeline_arguments(bf16, n, 16, 32, columns), [target])


@pytest.mark.parametrize("target", BOTH)
def test_pipelines_of_small_tiles_and_many_waves(target):
    """Some waves have nothing to fetch: waits must not count on their loads."""
    kernel = captured(pipeline, pipeline_arguments(bf16, 1, 8, 48, 96), stages=3, R=8, C=48, fill=0)
    for n in (2, 6):
        agree(kernel, pipeline_arguments(bf16, n, 8, 48, 96), [target], waves=4)


@pytest.mark.parametrize("target", BOTH)
def test_every_interleaving_of_waves_gives_the_same_bits(target):
    arguments = pipeline_arguments(bf16, 5, 16, 64, 256)
    built = program(captured(pipeline, arguments, stages=3, R=16, C=64, fill=0), target, waves=4)
    first = launch(built, arguments)
    for seed in range(1, 6):
        again = launch(built, arguments, seed=seed)
        np.testing.assert_array_equal(again["y"], first["y"])


def product_pipeline(a, b, c, first, last, *, step):
    """A product whose loop counts down or up, with a store in the loop."""
    acc = ww.zeros(TileType(f32, (32, 32)))
    for k in ww.pipeline(first, last, step):
        at = ww.load(a, (0, k), TileType(bf16, (32, 32), "shared"))
        bt = ww.load(b, (0, k), TileType(bf16, (32, 32), "shared"))
        acc = ww.mma_ABt(acc, at, bt)
        ww.store(c, (k, 0), acc)


@pytest.mark.parametrize(("first", "last", "step"), [(4, -1, -1), (0, 5, 2), (3, 3, 1)])
def test_pipelines_with_products_and_stores(first, last, step):
    arguments = {"a": numbers(bf16, 32, 160), "b": numbers(bf16, 32, 160, seed=1), "c": blank(f32, 160, 32)}
    arguments |= {"first": first, "last": last}
    agree(captured(product_pipeline, arguments, step=step), arguments)
