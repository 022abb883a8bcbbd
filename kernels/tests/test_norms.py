from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave import bf16, f16, f32
from warpwave.kernels import formulas
from warpwave.kernels.layernorm import layernorm
from warpwave.kernels.rmsnorm import rmsnorm
from warpwave.kernels.tests import plain
from warpwave.kernels.tests.checking import FLOATS, VIEWS, assert_close, bits, blank, launch, normal

SMALL = {"BM": 4, "BN": 64}
SHAPES = [(1, 1), (3, 7), (5, 63), (4, 64), (9, 65), (2, 200), (3, 257)]


def run_rms(x, weight=None, out=f32, **constants):
    y = blank(out, *x.shape)
    launch(rmsnorm, {"x": x, "y": y, "weight": weight}, **{**SMALL, **constants})
    return y


def run_layer(x, weight=None, bias=None, out=f32, **constants):
    y = blank(out, *x.shape)
    launch(layernorm, {"x": x, "y": y, "weight": weight, "bias": bias}, **{**SMALL, **constants})
    return y


def assert_rms(y, x, weight=None):
    assert_close(y, plain.rmsnorm(x, weight), formulas.rmsnorm(x, weight))


def assert_layer(y, x, weight=None, bias=None):
    assert_close(y, plain.layernorm(x, weight, bias), formulas.layernorm(x, weight, bias))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rmsnorm_at_any_shape(dtype, shape):
    rng = np.random.default_rng(shape[1])
    x, weight = normal(rng, dtype, *shape, scale=3), normal(rng, dtype, shape[1])
    assert_rms(run_rms(x, weight, dtype), x, weight)
    assert_rms(run_rms(x), x)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_layernorm_at_any_shape(dtype, shape):
    rng = np.random.default_rng(shape[1])
    x, weight, bias = normal(rng, dtype, *shape, scale=3), normal(rng, dtype, shape[1]), normal(rng, f32, shape[1])
    assert_layer(run_layer(x, weight, bias, dtype), x, weight, bias)
    assert_layer(run_layer(x, weight), x, weight)
    assert_layer(run_layer(x, None, bias), x, None, bias)
    assert_layer(run_layer(x), x)


@pytest.mark.parametrize("width", [50, 150])
def test_layernorm_returns_its_statistics(width):
    x = normal(np.random.default_rng(0), bf16, 2, 5, width)
    mean, rstd = blank(f32, 2, 5), blank(f32, 2, 5)
    launch(layernorm, {"x": x, "y": blank(f32, *x.shape), "mean": mean, "rstd": rstd}, **SMALL)
    value, (_, *allowed) = plain.wide(x), formulas.layer_statistics(x)
    for got, exact, found in zip(
        (mean, rstd), (value.mean(-1), 1 / np.sqrt(value.var(-1) + 1e-5)), allowed, strict=True
    ):
        assert_close(got, exact, found.moved(lambda a: a[..., 0]))


@pytest.mark.parametrize("width", [60, 150])
def test_layernorm_of_a_row_far_from_zero_loses_nothing_to_cancellation(width):
    x = 4096 + np.random.default_rng(1).integers(0, 16, (4, width)).astype(np.float32)
    assert_close(run_layer(x), plain.layernorm(x), formulas.layernorm(x, exact_sum=True))


@pytest.mark.parametrize("run", [run_rms, run_layer])
class TestBoth:
    @pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)], ids=str)
    def test_case_81_nothing_to_do(self, run, shape):
        assert run(blank(f32, *shape)).shape == shape

    @pytest.mark.parametrize("view", VIEWS)
    @pytest.mark.parametrize("width", [30, 150])
    def test_storage_does_not_change_a_bit(self, run, view, width):
        rng = np.random.default_rng(2)
        x, weight = normal(rng, bf16, 7, width), normal(rng, bf16, width)
        assert bits(run(VIEWS[view](x), VIEWS[view](weight))) == bits(run(x, weight))

    @pytest.mark.parametrize("power", [-12, 7])
    def test_without_epsilon_a_power_of_two_cancels(self, run, power):
        x = normal(np.random.default_rng(3), f32, 5, 100)
        scaled = np.ldexp(x, 2 * power).astype(np.float32)
        assert bits(run(scaled, eps=0.0)) == bits(run(x, eps=0.0))

    def test_repeats_and_row_order(self, run):
        rng = np.random.default_rng(4)
        x, order = normal(rng, f16, 11, 90), rng.permutation(11)
        assert bits(run(x)) == bits(run(x))
        assert bits(run(x[order])) == bits(run(x)[order])

    def test_a_nan_stays_in_its_row(self, run):
        x = normal(np.random.default_rng(5), f32, 6, 90)
        clean = run(x)
        x[3, 80] = np.nan
        y = run(x)
        assert np.isnan(y[3]).all()
        assert bits(np.delete(y, 3, 0)) == bits(np.delete(clean, 3, 0))

    def test_a_constant_row_is_finite(self, run):
        assert np.isfinite(run(np.zeros((2, 70), np.float32))).all()

    def test_a_weight_of_another_length_is_refused(self, run):
        with pytest.raises(ww.CheckFailed, match="length of the weight"):
            run(blank(f32, 3, 10), blank(f32, 11))


def test_tiles_of_other_sizes_stay_within_the_bound():
    x = normal(np.random.default_rng(6), f32, 9, 180)
    for height, width in ((1, 16), (2, 100), (16, 256)):
        assert_rms(run_rms(x, BM=height, BN=width), x)
        assert_layer(run_layer(x, BM=height, BN=width), x)


@pytest.mark.parametrize("width", [60, 150])
def test_rmsnorm_of_a_residual_sum_is_that_of_the_two_steps(width):
    rng = np.random.default_rng(7)
    x, residual = normal(rng, bf16, 6, width), normal(rng, bf16, 6, width)
    y, total = blank(bf16, 6, width), blank(bf16, 6, width)
    launch(rmsnorm, {"x": x, "y": y, "residual": residual, "total": total}, **SMALL)
    expected = (x.astype(np.float32) + residual.astype(np.float32)).astype(bf16.numpy)
    assert bits(total) == bits(expected)
    assert bits(y) == bits(run_rms(expected, out=bf16))


@pytest.mark.parametrize(("rows", "x_scale", "residual_scale"), [(16, 1, 1), (16, 1, 30), (16, 3, 3)])
def test_case_15_72_layers_of_rmsnorm_and_add_round_to_nearest(rows, x_scale, residual_scale):
    """Truncation would shrink the residual by a part in 370 each time, several percent in all."""
    rng = np.random.default_rng(0)
    x = normal(rng, bf16, rows, 512, scale=x_scale)
    stream = normal(rng, bf16, rows, 512, scale=residual_scale)
    errors = []
    for _ in range(72):
        y, total = blank(bf16, rows, 512), blank(bf16, rows, 512)
        launch(rmsnorm, {"x": x, "y": y, "residual": stream, "total": total}, BM=16, BN=512)
        exact = plain.wide(x) + plain.wide(stream)
        assert bits(total) == bits((x.astype(np.float32) + stream.astype(np.float32)).astype(bf16.numpy))
        errors.append(((plain.wide(total) - exact) / np.where(exact == 0, 1, exact)).mean())
        x, stream = y, total
    assert abs(np.mean(errors)) < 3e-4  # truncation: -2.7e-3
