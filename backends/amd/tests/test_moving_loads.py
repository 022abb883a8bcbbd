"""Pipelines whose loads move by constant steps, and those that only seem to: against the reference, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave import bf16, f32, rt, st
from warpwave.backends.amd.tests.harness import BOTH, duplicate, launch, program
from warpwave.tiles.reference import execute
from warpwave.tiles.tests.reference_harness import captured

# Coordinates of a's tile along its rows, of trip k; a has 7 tiles and a bit.
PLACES = {
    "each": lambda k: k,
    "every second": lambda k: 2 * k + 1,
    "from outside": lambda k: k - 2,
    "backwards": lambda k: 5 - k,
    "scaled": lambda k: (k + 1) * 3 - k * 2,
    "turning": lambda k: ww.where(k > 3, 6 - k, k),
    "standing": lambda k: 3,
}


def walks(a, b, o, *, row=0):
    """o[p] = the sum over trips of a's tiles at place p times b's tiles, for each kind of place."""
    for p, place in enumerate(PLACES.values()):
        acc = ww.zeros(rt[f32, 16, 16])
        for k in ww.pipeline(9):
            x = ww.load(a, (row, place(k)), st[bf16, 16, 32])
            y = ww.load(b, (k, 0), st[bf16, 16, 32])
            acc = ww.mma_ABt(acc, x, y)
        ww.store(o, (p, 0), acc)


def arguments(columns):
    rng = np.random.default_rng(columns)
    a = rng.integers(-3, 4, (24, columns)).astype(bf16.numpy)  # the second row of tiles is cut off
    b = rng.integers(-3, 4, (16 * 8 + 5, 32)).astype(bf16.numpy)
    return {"a": a, "b": b, "o": np.zeros((16 * len(PLACES), 16), np.float32)}


def assert_as_the_reference(target, columns, row):
    given = arguments(columns)
    kernel = captured(walks, given, row=row)
    expected = {name: duplicate(x) for name, x in given.items()}
    execute(kernel, expected)
    got = launch(program(kernel, target, stages=3), given)["o"]
    for p, name in enumerate(PLACES):
        np.testing.assert_array_equal(got[16 * p : 16 * p + 16], expected["o"][16 * p : 16 * p + 16], err_msg=name)
    assert np.abs(expected["o"]).max() > 0


@pytest.mark.parametrize(("target", "columns", "row"), [("gfx942", 232, 1), ("gfx950", 232, 1)])
def test_tiles_are_where_their_coordinates_say(target, columns, row):
    assert_as_the_reference(target, columns, row)


@pytest.mark.sweep
@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize(("columns", "row"), [(232, 0), (231, 0), (231, 1)])
def test_tiles_of_other_tensors(target, columns, row):
    assert_as_the_reference(target, columns, row)


def through_batches(a, b, o):
    """o = the sum over batches of a's and b's products, from one before the first batch to two after the last."""
    acc = ww.zeros(rt[f32, 16, 16])
    for k in ww.pipeline(-1, a.shape[0] + 2):
        x = ww.load(a, (k, 0, 1), st[bf16, 16, 32])
        y = ww.load(b, (k, 0, 0), st[bf16, 16, 32])
        acc = ww.mma_ABt(acc, x, y)
    ww.store(o, (0, 0), acc)


@pytest.mark.parametrize("target", BOTH)
def test_batches_that_the_loop_runs_through(target):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, (6, 20, 40)).astype(bf16.numpy) for _ in range(2))
    given = {"a": a, "b": b, "o": np.zeros((16, 16), np.float32)}
    got = launch(program(captured(through_batches, given), target, stages=2), given)["o"]
    x, y = a[:, :16, 32:40].astype(np.float32), b[:, :16, :8].astype(np.float32)
    np.testing.assert_array_equal(got, np.einsum("bik,bjk->ij", x, y))
