from __future__ import annotations

import itertools

import numpy as np
import pytest

import warpwave as ww
from warpwave import bf16, f16, f32, fp8e4m3, fp8e4m3fnuz, fp8e5m2, fp8e5m2fnuz, i8, i32
from warpwave.kernels import formulas
from warpwave.kernels.gemm import gemm
from warpwave.kernels.tests import plain
from warpwave.kernels.tests.checking import VIEWS, assert_close, bits, blank, launch, normal
from warpwave.tiles.reference.running_error import Approx

SMALL = {"BM": 32, "BN": 48, "BK": 16}
TRANSPOSES = list(itertools.product((False, True), repeat=2))


def operands(rng, m, n, k, dtype_a, dtype_b=None, transpose_a=False, transpose_b=False):
    a = normal(rng, dtype_a, *((k, m) if transpose_a else (m, k)))
    b = normal(rng, dtype_b or dtype_a, *((n, k) if transpose_b else (k, n)))
    return a, b


def exact(a, b, transpose_a=False, transpose_b=False):
    a, b = plain.wide(a), plain.wide(b)
    a, b = (a.swapaxes(-1, -2) if transpose_a else a), (b.swapaxes(-1, -2) if transpose_b else b)
    return a @ b, formulas.product(a, b)


def product(a, b, out, m, n, **constants):
    c = blank(out, m, n)
    launch(gemm, {"a": a, "b": b, "c": c}, **{**SMALL, **constants})
    return c


@pytest.mark.parametrize(("transpose_a", "transpose_b"), TRANSPOSES)
@pytest.mark.parametrize("mnk", [(1, 1, 1), (17, 31, 13), (64, 96, 32), (65, 47, 33), (5, 1, 129)], ids=str)
def test_all_transpositions_at_any_shape(transpose_a, transpose_b, mnk):
    rng = np.random.default_rng(sum(mnk))
    m, n, k = mnk
    flags = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    a, b = operands(rng, m, n, k, bf16, **flags)
    assert_close(product(a, b, f32, m, n, **flags), *exact(a, b, **flags))


@pytest.mark.parametrize("out", [f32, f16, bf16, fp8e5m2])
@pytest.mark.parametrize("dtype", [f32, f16, bf16, fp8e4m3, fp8e5m2, fp8e4m3fnuz, fp8e5m2fnuz])
def test_every_float_dtype(dtype, out):
    a, b = operands(np.random.default_rng(1), 40, 50, 60, dtype)
    assert_close(product(a, b, out, 40, 50), *exact(a, b))


@pytest.mark.parametrize(("first", "second"), [(fp8e4m3, fp8e5m2), (fp8e5m2fnuz, fp8e4m3fnuz)])
def test_two_fp8_formats_of_one_family(first, second):
    a, b = operands(np.random.default_rng(1), 20, 30, 40, first, second)
    assert_close(product(a, b, f32, 20, 30), *exact(a, b))


@pytest.mark.parametrize(("transpose_a", "transpose_b"), TRANSPOSES)
def test_i8_products_are_exact(transpose_a, transpose_b):
    flags = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    a, b = operands(np.random.default_rng(2), 33, 50, 70, i8, **flags)
    np.testing.assert_array_equal(product(a, b, i32, 33, 50, **flags), exact(a, b, **flags)[0])


def test_case_56_m1000_n999_k1001_in_nan_padded_storage():
    a, b = operands(np.random.default_rng(56), 1000, 999, 1001, f16)
    c = VIEWS["padded"](blank(f16, 1000, 999))
    launch(gemm, {"a": VIEWS["padded"](a), "b": VIEWS["padded"](b), "c": c})
    assert_close(c, *exact(a, b))
    assert np.isnan(c.base[:3]).all()
    assert np.isnan(c.base[:, -3:]).all()


@pytest.mark.parametrize("n", [1, 8, 12, 200])
def test_case_68_a_width_that_is_no_multiple_of_16(n):
    a, b = operands(np.random.default_rng(n), 64, n, 64, bf16)
    assert_close(product(a, b, bf16, 64, n), *exact(a, b))


@pytest.mark.parametrize(("shape_a", "shape_b"), [((0, 7), (7, 9)), ((5, 7), (7, 0)), ((5, 0, 7), (5, 7, 9))], ids=str)
def test_case_80_81_an_empty_product_launches_nothing(shape_a, shape_b):
    a, b = np.ones(shape_a, np.float32), np.ones(shape_b, np.float32)
    c = blank(f32, *shape_a[:-1], shape_b[-1])
    launch(gemm, {"a": a, "b": b, "c": c}, **SMALL)
    assert c.size == 0


def test_case_80_no_depth_gives_zeros_plus_bias():
    bias = normal(np.random.default_rng(0), f32, 9)
    arguments = {"a": blank(f32, 5, 0), "b": blank(f32, 0, 9)}
    plainly, biased = blank(f32, 5, 9), blank(f32, 5, 9)
    launch(gemm, {**arguments, "c": plainly}, **SMALL)
    launch(gemm, {**arguments, "c": biased, "bias": bias}, **SMALL)
    assert bits(plainly) == bits(np.zeros((5, 9), np.float32))
    assert bits(biased) == bits(np.broadcast_to(bias, (5, 9)))


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("transpose_a", "transpose_b"), TRANSPOSES)
def test_storage_does_not_change_a_bit(view, transpose_a, transpose_b):
    flags = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    a, b = operands(np.random.default_rng(3), 35, 50, 41, bf16, **flags)
    c = VIEWS[view](blank(f32, 35, 50))
    launch(gemm, {"a": VIEWS[view](a), "b": VIEWS[view](b), "c": c}, **SMALL, **flags)
    assert bits(c) == bits(product(a, b, f32, 35, 50, **flags))


@pytest.mark.parametrize(
    ("activation", "function", "allowed"),
    [
        (None, lambda x: x, lambda x: x),
        (ww.relu, plain.relu, lambda x: x.maximum(0)),
        (ww.gelu, plain.gelu, lambda x: formulas.activated(x, "gelu", plain.gelu(x.value), slope=1.13)),
        (ww.silu, plain.silu, lambda x: formulas.activated(x, "silu", plain.silu(x.value), slope=1.1)),
    ],
    ids=["none", "relu", "gelu", "silu"],
)
def test_bias_and_activation(activation, function, allowed):
    rng = np.random.default_rng(4)
    a, b = operands(rng, 40, 50, 30, f16)
    bias, c = normal(rng, bf16, 50), blank(f32, 40, 50)
    launch(gemm, {"a": a, "b": b, "c": c, "bias": bias}, activation=activation, **SMALL)
    before, found = exact(a, b)
    assert_close(c, function(before + plain.wide(bias)), allowed(found + bias))


def clipped(x):
    return ww.clamp(x, -1, 6)


def test_an_activation_may_be_the_users_own():
    a, b = operands(np.random.default_rng(5), 20, 20, 20, f32)
    value, found = exact(a, b)
    assert_close(product(a, b, f32, 20, 20, activation=clipped), np.clip(value, -1, 6), found)


def test_an_integer_product_takes_a_bias_of_either_kind():
    rng = np.random.default_rng(6)
    a, b = operands(rng, 10, 20, 30, i8)
    whole, part = rng.integers(-9, 9, 20, np.int32), normal(rng, f32, 20)
    c, d = blank(i32, 10, 20), blank(f32, 10, 20)
    launch(gemm, {"a": a, "b": b, "c": c, "bias": whole}, **SMALL)
    launch(gemm, {"a": a, "b": b, "c": d, "bias": part}, **SMALL)
    np.testing.assert_array_equal(c, exact(a, b)[0] + whole)
    assert_close(d, exact(a, b)[0] + part, Approx.of(exact(a, b)[0] + part))


@pytest.mark.parametrize("batch", [(3,), (2, 3)], ids=str)
def test_batches_with_a_shared_operand(batch):
    rng = np.random.default_rng(7)
    a, b = normal(rng, bf16, *batch, 20, 30), np.broadcast_to(normal(rng, bf16, 30, 40), (*batch, 30, 40))
    c = blank(f32, *batch, 20, 40)
    launch(gemm, {"a": a, "b": b, "c": c}, **SMALL)
    assert_close(c, *exact(a, b))


@pytest.mark.parametrize("power", [-9, 5])
def test_scaling_by_a_power_of_two_scales_the_result_exactly(power):
    a, b = operands(np.random.default_rng(8), 33, 34, 35, f32)
    scaled = product(np.ldexp(a, power).astype(np.float32), b, f32, 33, 34)
    assert bits(scaled) == bits(np.ldexp(product(a, b, f32, 33, 34), power))


def test_permuting_rows_permutes_the_result():
    rng = np.random.default_rng(9)
    a, b = operands(rng, 70, 34, 35, bf16)
    order = rng.permutation(70)
    assert bits(product(a[order], b, f32, 70, 34)) == bits(product(a, b, f32, 70, 34)[order])


def test_tiles_of_other_sizes_stay_within_the_bound():
    a, b = operands(np.random.default_rng(10), 70, 60, 90, bf16)
    for tiles in ((16, 16, 16), (64, 32, 48), (128, 256, 64)):
        c = product(a, b, f32, 70, 60, **dict(zip(("BM", "BN", "BK"), tiles, strict=True)))
        assert_close(c, *exact(a, b))


def test_a_nan_row_stays_in_its_row():
    a, b = operands(np.random.default_rng(11), 40, 40, 40, bf16)
    clean = product(a, b, f32, 40, 40)
    a[5] = np.nan
    c = product(a, b, f32, 40, 40)
    assert np.isnan(c[5]).all()
    assert bits(np.delete(c, 5, 0)) == bits(np.delete(clean, 5, 0))


@pytest.mark.parametrize(
    ("shapes", "what"),
    [
        (((4, 5), (6, 7), (4, 7)), "depth of the product"),
        (((4, 5), (5, 7), (3, 7)), "rows of the product"),
        (((4, 5), (5, 7), (4, 8)), "columns of the product"),
        (((2, 4, 5), (3, 5, 7), (2, 4, 7)), "batch"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_shapes_that_do_not_fit_are_refused(shapes, what):
    a, b, c = (blank(f32, *s) for s in shapes)
    with pytest.raises(ww.CheckFailed, match=f"disagree about the {what}"):
        launch(gemm, {"a": a, "b": b, "c": c})


def test_a_shape_that_does_not_fit_is_refused_for_an_empty_product_too():
    with pytest.raises(ww.CheckFailed, match="depth of the product"):
        launch(gemm, {"a": blank(f32, 0, 5), "b": blank(f32, 6, 7), "c": blank(f32, 0, 7)})


def test_mixed_operand_dtypes_are_refused_with_the_rule():
    with pytest.raises(ww.TileTypeError, match="floats of one format"):
        launch(gemm, {"a": blank(f32, 4, 4), "b": blank(bf16, 4, 4), "c": blank(f32, 4, 4)})
