from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave import bf16, f32
from warpwave.kernels import formulas
from warpwave.kernels.rotary import rotary
from warpwave.kernels.tests import plain
from warpwave.kernels.tests.checking import FLOATS, VIEWS, assert_close, bits, blank, launch, normal


def angles(positions, half, dtype=f32):
    theta = np.arange(positions)[:, None] * 10000.0 ** (-np.arange(half) / half)
    return np.cos(theta).astype(dtype.numpy), np.sin(theta).astype(dtype.numpy)


def run(x, cos, sin, interleaved, out=f32, **constants):
    y = blank(out, *x.shape)
    launch(rotary, {"x": x, "y": y, "cos": cos, "sin": sin}, interleaved=interleaved, **constants)
    return y


def assert_rotated(y, x, cos, sin, interleaved):
    assert_close(y, plain.rotate(x, cos, sin, interleaved), formulas.rotate(x, cos, sin, interleaved))


SHAPES = [(1, 1, 1, 2), (2, 3, 33, 40), (1, 4, 64, 64), (1, 8, 31, 128), (2, 5, 7, 6)]


@pytest.mark.parametrize("interleaved", [False, True])
class TestBothConventions:
    @pytest.mark.parametrize(
        "shape", [(1, 1, 1, 2), (2, 3, 33, 40), (1, 4, 64, 64), (1, 8, 31, 128), (2, 5, 7, 6)], ids=str
    )
    @pytest.mark.parametrize("dtype", FLOATS, ids=str)
    def test_any_shape(self, interleaved, shape, dtype):
        x = normal(np.random.default_rng(shape[2]), dtype, *shape)
        cos, sin = angles(shape[2], shape[3] // 2, dtype)
        assert_rotated(run(x, cos, sin, interleaved, dtype), x, cos, sin, interleaved)

    @pytest.mark.parametrize("view", VIEWS)
    def test_storage_does_not_change_a_bit(self, interleaved, view):
        x = normal(np.random.default_rng(1), bf16, 2, 3, 20, 24)
        cos, sin = angles(20, 12)
        y = VIEWS[view](blank(f32, *x.shape))
        tensors = {"x": VIEWS[view](x), "y": y, "cos": VIEWS[view](cos), "sin": VIEWS[view](sin)}
        launch(rotary, tensors, interleaved=interleaved)
        assert bits(y) == bits(run(x, cos, sin, interleaved))

    def test_in_place(self, interleaved):
        x = normal(np.random.default_rng(2), bf16, 2, 4, 40, 64)
        cos, sin = angles(40, 32)
        expected = run(x, cos, sin, interleaved, bf16)
        launch(rotary, {"x": x, "y": x, "cos": cos, "sin": sin}, interleaved=interleaved)
        assert bits(x) == bits(expected)

    def test_blocks_of_other_sizes_change_no_bit(self, interleaved):
        x = normal(np.random.default_rng(3), f32, 1, 6, 50, 32)
        cos, sin = angles(50, 16)
        expected = run(x, cos, sin, interleaved)
        for heads, rows in ((1, 16), (3, 64), (8, 7)):
            assert bits(run(x, cos, sin, interleaved, BH=heads, BN=rows)) == bits(expected)

    def test_position_0_is_left_alone_and_lengths_are_kept(self, interleaved):
        x = normal(np.random.default_rng(4), f32, 1, 2, 30, 64)
        y = run(x, *angles(30, 32), interleaved)
        assert bits(y[:, :, 0]) == bits(x[:, :, 0])
        error = 2 * formulas.rotate(x, *angles(30, 32), interleaved).error  # the sines and cosines are rounded, too
        lengths = [np.linalg.norm(t.astype(np.float64), axis=-1) for t in (x, y)]
        assert (np.abs(lengths[1] - lengths[0]) <= np.linalg.norm(error, axis=-1)).all()

    @pytest.mark.parametrize("shape", [(0, 2, 3, 4), (1, 0, 3, 4), (1, 2, 0, 4)], ids=str)
    def test_case_81_nothing_to_do(self, interleaved, shape):
        assert run(blank(f32, *shape), *angles(shape[2], 2), interleaved).shape == shape

    def test_an_odd_width_is_refused(self, interleaved):
        with pytest.raises(ww.CaptureError, match="even width, got 5"):
            run(blank(f32, 1, 1, 3, 5), *angles(3, 2), interleaved)

    def test_angles_of_another_length_are_refused(self, interleaved):
        with pytest.raises(ww.CheckFailed, match="number of positions"):
            run(blank(f32, 1, 1, 3, 4), *angles(4, 2), interleaved)


def test_the_two_conventions_differ_by_a_permutation():
    x = normal(np.random.default_rng(5), f32, 1, 2, 30, 16)
    cos, sin = angles(30, 8)
    order = np.arange(16).reshape(2, 8).T.ravel()  # element i and i + 8 become neighbours
    assert bits(run(x[..., order], cos, sin, True)) == bits(run(x, cos, sin, False)[..., order])
