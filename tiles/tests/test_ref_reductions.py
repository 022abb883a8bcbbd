"""Reductions, running sums, matrix products and rearrangements against float64 and brute force."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpwave as ww
from warpwave.tiles.dtypes import bf16, f16, f32, fp8e4m3, fp8e4m3fnuz, fp8e5m2, fp8e5m2fnuz, i8, i32, i64
from warpwave.tiles.tests.reference_harness import assert_softmax, evaluate, same_bits

FLOATS = (f32, f16, bf16)
INTS = (i8, i32, i64)
SHAPES = [(1, 1), (1, 13), (7, 1), (5, 17), (32, 64)]


def normal(shape, dtype, seed=0):
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32).astype(dtype.numpy)


def nearest(wide, dtype):
    return wide.astype(np.float32).astype(dtype.numpy)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_sum_and_prod(dtype, shape, axis):
    x = normal(shape, dtype)
    wide = x.astype(np.float64)
    exact = np.array([math.fsum(v) for v in np.moveaxis(wide, axis, -1).reshape(-1, shape[axis])])
    same_bits(evaluate(lambda t: ww.sum(t, axis=axis), x), nearest(exact, dtype))
    same_bits(evaluate(lambda t: ww.prod(t, axis=axis), x), nearest(np.prod(wide, axis=axis), dtype))


def test_sum_of_bf16_is_not_rounded_on_the_way():
    x = np.full(1024, 1.0, bf16.numpy)
    assert evaluate(lambda t: ww.sum(t), x) == 1024.0
    x[0] = 256.0
    assert evaluate(lambda t: ww.sum(t), x).astype(np.float64) == np.float64(np.array(1279.0).astype(bf16.numpy))


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integer_reductions_wrap(dtype):
    x = np.random.default_rng(0).integers(dtype.min, dtype.max, (6, 11)).astype(dtype.numpy)
    span = 1 << dtype.bits

    def wrap(value):
        return (value + span // 2) % span - span // 2

    rows = [[int(v) for v in row] for row in x]
    np.testing.assert_array_equal(evaluate(lambda t: ww.sum(t, axis=1), x), [wrap(sum(r)) for r in rows])
    np.testing.assert_array_equal(evaluate(lambda t: ww.prod(t, axis=1), x), [wrap(math.prod(r)) for r in rows])
    np.testing.assert_array_equal(evaluate(lambda t: ww.max(t, axis=1), x), [max(r) for r in rows])
    np.testing.assert_array_equal(evaluate(lambda t: ww.min(t, axis=1), x), [min(r) for r in rows])
    running = [[wrap(sum(r[: i + 1])) for i in range(len(r))] for r in rows]
    np.testing.assert_array_equal(evaluate(lambda t: ww.cumsum(t, axis=1), x), running)


def fold_max(values, nan):
    """IEEE maximum over a list, with +0 above -0."""
    numbers = [v for v in values if not math.isnan(v)]
    if len(numbers) < len(values) and nan == "propagate":
        return math.nan
    return max(numbers, key=lambda v: (v, math.copysign(1, v)), default=-math.inf)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.sampled_from(FLOATS),
    st.sampled_from(["propagate", "ignore"]),
    st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan]), min_size=1, max_size=6),
)
def test_max_and_min_of_special_values(dtype, nan, values):
    x = np.array(values, dtype.numpy)
    largest = evaluate(lambda t: ww.max(t, axis=0, nan=nan), x)
    same_bits(largest, np.array(fold_max(values, nan), dtype.numpy))
    smallest = evaluate(lambda t: ww.min(t, axis=0, nan=nan), x)
    same_bits(smallest, np.array(-fold_max([-v for v in values], nan), dtype.numpy))


@pytest.mark.parametrize("nan", ["propagate", "ignore"])
def test_max_along_either_axis_and_all(nan):
    x = normal((9, 14), f32)
    x[3, 4] = np.nan
    rows = [fold_max(list(map(float, row)), nan) for row in x]
    cols = [fold_max(list(map(float, col)), nan) for col in x.T]
    np.testing.assert_array_equal(evaluate(lambda t: ww.max(t, axis=1, nan=nan), x), np.float32(rows))
    np.testing.assert_array_equal(evaluate(lambda t: ww.max(t, axis=0, nan=nan), x), np.float32(cols))
    np.testing.assert_array_equal(evaluate(lambda t: ww.max(t, nan=nan), x), np.float32(fold_max(rows, nan)))
    kept = evaluate(lambda t: ww.max(t, axis=1, keepdims=True, nan=nan), x)
    np.testing.assert_array_equal(kept, np.float32(rows)[:, None])


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_cumsum(dtype, axis, reverse, exclusive):
    x = normal((6, 9), dtype)
    lanes = np.moveaxis(x.astype(np.float64), axis, -1)
    expected = np.empty_like(lanes)
    for index in np.ndindex(lanes.shape):
        row, i = lanes[index[:-1]], index[-1]
        part = row[i + exclusive :] if reverse else row[: i + (not exclusive)]
        expected[index] = math.fsum(part)
    got = evaluate(lambda t: ww.cumsum(t, axis=axis, reverse=reverse, exclusive=exclusive), x)
    same_bits(got, nearest(np.moveaxis(expected, -1, axis), dtype))


# -- matrix products ----------------------------------------------------------------------------------

PAIRS = [(d, d) for d in (f32, f16, bf16, fp8e4m3, fp8e5m2, fp8e4m3fnuz, fp8e5m2fnuz)]
PAIRS += [(fp8e4m3, fp8e5m2), (fp8e5m2fnuz, fp8e4m3fnuz)]
FORMS = {
    "AB": (ww.mma_AB, False, False),
    "ABt": (ww.mma_ABt, False, True),
    "AtB": (ww.mma_AtB, True, False),
    "AtBt": (ww.mma_AtBt, True, True),
}


def exact_product(acc, a, b):
    m, k = a.shape
    return np.array(
        [[math.fsum([acc[i, j], *(a[i, q] * b[q, j] for q in range(k))]) for j in range(b.shape[1])] for i in range(m)]
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("left", "right"), PAIRS, ids=str)
def test_matrix_product_of_small_formats_is_exact_then_rounded(left, right, form):
    op, flip_a, flip_b = FORMS[form]
    a, b, acc = normal((5, 7), left, 1), normal((7, 3), right, 2), normal((5, 3), f32, 3)
    got = evaluate(op, acc, a.T.copy() if flip_a else a, b.T.copy() if flip_b else b)
    exact = exact_product(*(x.astype(np.float64) for x in (acc, a, b)))
    same_bits(got, exact.astype(np.float32))


def test_integer_matrix_product_wraps():
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, (4, 33)).astype(np.int8) for _ in range(2))
    acc = np.full((4, 4), i32.max, np.int32)
    exact = a.astype(np.int64) @ b.astype(np.int64).T + int(i32.max)
    wrapped = (exact + 2**31) % 2**32 - 2**31
    np.testing.assert_array_equal(evaluate(ww.mma_ABt, acc, a, b), wrapped)


def test_matrix_product_with_infinities_and_nan():
    a = np.array([[1, np.inf], [0, 1], [np.nan, 0], [3e38, 3e38]], np.float32)
    b = np.array([[1, 0], [1, -1]], np.float32)
    got = evaluate(ww.mma_AB, np.zeros((4, 2), np.float32), a, b)
    np.testing.assert_array_equal(got, np.float32([[np.inf, -np.inf], [1, -1], [np.nan, np.nan], [np.inf, -3e38]]))


# -- rearrangements -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [f32, bf16, fp8e5m2, i32, i8], ids=str)
def test_rearrangements(dtype):
    x = np.arange(24).reshape(4, 6).astype(np.float32).astype(dtype.numpy)
    v = np.arange(6).astype(np.float32).astype(dtype.numpy)
    same_bits(evaluate(lambda t: t.T, x), x.T.copy())
    same_bits(evaluate(lambda t: t[1:3, 2:5], x), x[1:3, 2:5].copy())
    same_bits(evaluate(lambda t: ww.concat([t[:, :2], t], axis=1), x), np.concatenate([x[:, :2], x], axis=1))
    same_bits(evaluate(lambda t: ww.concat([t, t], axis=0), x), np.concatenate([x, x]))
    same_bits(evaluate(lambda t: ww.broadcast_to(t[:, None], (6, 4)), v), np.repeat(v[:, None], 4, axis=1))
    same_bits(evaluate(lambda t: ww.broadcast_to(t[None, :], (3, 6)), v), np.repeat(v[None, :], 3, axis=0))
    even, odd = evaluate(ww.deinterleave, x)
    same_bits(even, x[:, 0::2].copy())
    same_bits(odd, x[:, 1::2].copy())
    same_bits(evaluate(lambda t: ww.interleave(*ww.deinterleave(t)), x), x)
    same_bits(evaluate(lambda t: ww.to_register(ww.to_shared(t)), x), x)
    same_bits(evaluate(lambda t: ww.distribute(t, (2, 1)), x), x)


def test_iota_full_and_masks():
    rows = evaluate(lambda _: ww.iota(ww.rt[i32, 3, 5], axis=0), np.zeros(1, np.int32))
    cols = evaluate(lambda _: ww.iota(ww.rt[i32, 3, 5], axis=1), np.zeros(1, np.int32))
    np.testing.assert_array_equal([rows, cols], np.indices((3, 5)))
    scores = normal((5, 7), f32)
    masked = evaluate(lambda t: ww.causal_mask(t, row=3, col=2), scores)
    keep = np.array([[r + 3 >= c + 2 for c in range(7)] for r in range(5)])
    np.testing.assert_array_equal(masked, np.where(keep, scores, -np.inf))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.sampled_from([1, 2, 3, 5, 31, 64, 97]), st.sampled_from([1, 2, 7, 33, 61]), st.integers(0, 2**31))
def test_softmax_of_any_shape(rows, cols, seed):
    x = normal((rows, cols), f32, seed) * np.float32(3)

    def softmax(t):
        e = ww.exp(t - ww.max(t, axis=1)[:, None])
        return e / ww.sum(e, axis=1)[:, None]

    assert_softmax(evaluate(softmax, x), x)


def test_reduction_order_is_free_but_the_result_is_one():
    x = normal((64,), f32) * np.float32(1e4)
    first = evaluate(lambda t: ww.sum(t), x)
    repeats = [evaluate(lambda t: ww.sum(t), x) for _ in range(5)]
    assert all(r == first for r in repeats)
    assert first == functools.reduce(lambda a, b: a + b, [np.float64(v) for v in x]).astype(np.float32)
