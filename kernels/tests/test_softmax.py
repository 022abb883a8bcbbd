from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave import bf16, f16, f32, fp8e4m3
from warpwave.kernels import formulas
from warpwave.kernels.softmax import softmax
from warpwave.kernels.tests import plain
from warpwave.kernels.tests.checking import FLOATS, VIEWS, assert_close, bits, blank, launch, normal

SMALL = {"BM": 4, "BN": 64}
SHAPES = [(1, 1), (3, 7), (5, 63), (4, 64), (9, 65), (2, 200), (3, 257)]


def rows(x, out, **constants):
    y = blank(out, *x.shape)
    launch(softmax, {"x": x, "y": y}, **{**SMALL, **constants})
    return y


def assert_softmax(y, x):
    assert_close(y, plain.softmax(x), formulas.softmax(x))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_any_shape_in_one_tile_and_in_several(dtype, shape):
    x = normal(np.random.default_rng(shape[1]), dtype, *shape, scale=4)
    assert_softmax(rows(x, dtype), x)


@pytest.mark.parametrize("shape", [(2, 3, 70), (2, 1, 3, 33)], ids=str)
def test_leading_dimensions(shape):
    x = normal(np.random.default_rng(1), bf16, *shape)
    assert_softmax(rows(x, f32), x)


@pytest.mark.parametrize("width", [1, 100, 5000, 16384, 16385])
def test_default_tiles(width):
    x, y = normal(np.random.default_rng(width), f16, 3, width), blank(f32, 3, width)
    launch(softmax, {"x": x, "y": y})
    assert_softmax(y, x)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)], ids=str)
def test_case_81_nothing_to_do(shape):
    assert rows(blank(f32, *shape), f32).shape == shape


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [30, 150])
def test_storage_does_not_change_a_bit(view, width):
    x = normal(np.random.default_rng(2), bf16, 7, width)
    y = VIEWS[view](blank(f32, 7, width))
    launch(softmax, {"x": VIEWS[view](x), "y": y}, **SMALL)
    assert bits(y) == bits(rows(x, f32))


def test_a_late_and_huge_maximum():
    x = normal(np.random.default_rng(3), f32, 4, 300)
    x[0, 299] = 3e38
    x[1] = -3e38
    x[1, 250] = 3e38
    x[2, 128] = 1e4
    x[3] = np.linspace(0, 8000, 300)
    assert_softmax(rows(x, f32), x)


def test_minus_infinity_is_a_probability_of_zero_even_for_a_whole_first_tile():
    x = normal(np.random.default_rng(4), bf16, 3, 150)
    x[0, :70] = -np.inf
    x[1, 1:] = -np.inf
    x[2, :149] = -np.inf
    y = rows(x, f32)
    assert_softmax(y, x)
    assert (y[0, :70] == 0).all()
    assert y[1, 0] == y[2, 149] == 1


@pytest.mark.parametrize("width", [30, 150])
@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_rows_without_a_finite_maximum_are_nan_and_others_untouched(special, width):
    x = normal(np.random.default_rng(5), f32, 6, width)
    clean = rows(x, f32)
    x[2, width // 2] = special
    x[4] = -np.inf
    y = rows(x, f32)
    assert np.isnan(y[[2, 4]]).all()
    assert bits(y[[0, 1, 3, 5]]) == bits(clean[[0, 1, 3, 5]])


def test_adding_a_constant_that_is_exact_changes_no_bit():
    x = np.random.default_rng(6).integers(-64, 64, (5, 100)).astype(np.float32) / 8
    assert bits(rows(x + 512, f32)) == bits(rows(x, f32))


def test_repeats_and_row_order():
    rng = np.random.default_rng(7)
    x, order = normal(rng, bf16, 11, 90), rng.permutation(11)
    assert bits(rows(x, bf16)) == bits(rows(x, bf16))
    assert bits(rows(x[order], bf16)) == bits(rows(x, bf16)[order])


def test_tiles_of_other_sizes_stay_within_the_bound():
    x = normal(np.random.default_rng(8), f32, 9, 180, scale=5)
    for height, width in ((1, 16), (2, 100), (16, 256)):
        assert_softmax(rows(x, f32, BM=height, BN=width), x)


def test_a_dtype_without_infinities_is_refused_at_the_load():
    with pytest.raises(ww.TileValueError, match="fp8e4m3 has no infinity"):
        rows(blank(fp8e4m3, 2, 2), f32)


def test_shapes_that_differ_are_refused():
    with pytest.raises(ww.CheckFailed, match="extent of axis 1 of x and y"):
        launch(softmax, {"x": blank(f32, 2, 3), "y": blank(f32, 2, 4)})
