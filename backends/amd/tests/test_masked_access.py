"""Wide loads and stores of tiles that overhang their tensor: they leave lanes out by buffer offsets, without branches."""

from __future__ import annotations

import re

import numpy as np
import pytest

import warpwave as ww
from warpwave.backends.amd.tests.harness import BOTH, launch, program
from warpwave.tiles.dtypes import bf16, f32, fp8e4m3, i8, i64
from warpwave.tiles.tests.reference_harness import captured
from warpwave.tiles.types import TileType


def window(x, y, z, *, places, shape, fill):
    """Tiles of x: each goes whole to y, and to the same place of z, where only what is inside is written."""
    ww.grid(1)
    for number, (row, col) in enumerate(places):
        tile = ww.load(x, (row, col), TileType(x.dtype, shape), unit="element", fill=fill)
        ww.store(y, (number, 0, 0), tile)
        ww.store(z, (number, row, col), tile, unit="element")


def expected(x, row, col, shape, fill):
    """Element by element."""
    tile = np.full(shape, fill, x.dtype)
    z = np.zeros_like(x)
    for i, j in np.ndindex(shape):
        if 0 <= row + i < x.shape[0] and 0 <= col + j < x.shape[1]:
            tile[i, j] = z[row + i, col + j] = x[row + i, col + j]
    return tile, z


def window_arguments(x, shape, count):
    return {"x": x, "y": np.zeros((count, *shape), x.dtype), "z": np.zeros((count, *x.shape), x.dtype)}


def random_bits(dtype, *shape):
    return np.random.default_rng(3).integers(1, 100, shape).astype(dtype.numpy)


SHAPES = ((2, 512), (8, 128), (32, 32))  # a wave in one row; several rows a wave; short rows
PLACES = ((0, 0), (-1, -16), (30, 96), (-40, 0), (0, 4096), (0, -4096), (5, 48))
TILES = [(bf16, SHAPES[0], 0), (f32, SHAPES[1], -2), (fp8e4m3, SHAPES[2], 1), (i64, SHAPES[0], 7)]


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize(("dtype", "shape", "fill"), TILES, ids=str)
def test_what_is_outside_is_filled_and_not_written(target, dtype, shape, fill):
    x = random_bits(dtype, 33, 160)
    arguments = window_arguments(x, shape, len(PLACES))
    got = launch(program(captured(window, arguments, places=PLACES, shape=shape, fill=fill), target), arguments)
    for number, place in enumerate(PLACES):
        tile, z = expected(x, *place, shape, fill)
        np.testing.assert_array_equal(got["y"][number], tile, err_msg=str(place))
        np.testing.assert_array_equal(got["z"][number], z, err_msg=str(place))


@pytest.mark.parametrize("fill", [-0.0, float("-inf"), float("nan")])
def test_fills_keep_their_bits(fill):
    arguments = window_arguments(random_bits(f32, 1, 40), (1, 64), 1)
    kernel = captured(window, arguments, places=[(0, 0)], shape=(1, 64), fill=fill)
    outside = launch(program(kernel, "gfx950"), arguments)["y"][0, 0, 40:]
    assert (outside.view(np.uint32) == np.full(24, fill, np.float32).view(np.uint32)).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_no_lane_is_left_out_by_a_branch(shape):
    arguments = window_arguments(np.zeros((64, 512), bf16.numpy), shape, 1)
    built = program(captured(window, arguments, places=[(3, 16)], shape=shape, fill=0), "gfx950")
    assert "s_and_saveexec" not in built.asm
    assert "global_load" not in built.asm
    assert "global_store" not in built.asm


# -- comparisons that are the same for all elements of an access ------------------------------------------

FORMS = {
    "lt": lambda column, bound: column < bound,
    "le": lambda column, bound: column <= bound,
    "gt": lambda column, bound: column > bound,
    "ge": lambda column, bound: column >= bound,
    "bound le": lambda column, bound: bound <= column,
    "bound gt": lambda column, bound: bound > column,
}


BOUNDS = ("extent", "part", "number", "argument")


def masked(x, y, bound: int, *, C):
    """For each form and bound: 1 where a column's number, counted over all tiles, is on one side of the bound."""
    i, j = ww.grid(x.rows, ww.cdiv(x.cols, C))
    bounds = {"extent": x.cols, "part": x.cols - j * C, "number": 24, "argument": bound}
    tile = ww.load(x, (i, j), ww.rt[f32, 1, C])
    for f, form in enumerate(FORMS.values()):
        for b, of in enumerate(BOUNDS):
            column = ww.iota(ww.rv[ww.i32, C])
            column = (column if of == "part" else column + j * C)[None, :]
            ww.store(y, (f, b, i, j), ww.where(form(column, bounds[of]), tile, 0.0))


@pytest.mark.parametrize("cols", [40, 43])
def test_masks_are_those_of_every_single_element(cols):
    """Also where neighbours differ: bounds that are no multiple of an access, and tensors with narrow rows."""
    x = np.ones((2, cols), np.float32)
    arguments = {"x": x, "y": np.zeros((len(FORMS), len(BOUNDS), *x.shape), np.float32), "bound": 21}
    got = launch(program(captured(masked, arguments, C=16), "gfx950"), arguments)["y"]
    for f, form in enumerate(FORMS.values()):
        for b, bound in enumerate((cols, cols, 24, 21)):
            want = np.broadcast_to(form(np.arange(cols), bound), x.shape)
            np.testing.assert_array_equal(got[f, b], want, err_msg=f"{[*FORMS][f]} {BOUNDS[b]}")


@pytest.mark.parametrize(("dtype", "alike"), [(f32, 4), (bf16, 8), (i8, 16)], ids=str)
def test_one_comparison_for_each_access(dtype, alike):
    """64 lanes hold 1024 columns: one comparison for each 16 bytes of the tensor decides what is left out of a sum."""

    def tail(x, y):
        ww.grid(1)
        tile = ww.load(x, (0, 0), ww.rt[f32, 1, 1024])
        inside = (ww.iota(ww.rv[ww.i32, 1024]) < x.cols)[None, :]
        ww.store(y, 0, ww.sum(ww.where(inside, tile - 1.0, 0.0), axis=1))

    arguments = {"x": np.zeros((1, 1000 // alike * alike), dtype.numpy), "y": np.zeros(1, np.float32)}
    built = program(captured(tail, arguments), "gfx950", waves=1)
    assert len(re.findall(r"v_cmp_\w+_i32", built.asm)) <= 1024 // 64 // alike + 1
