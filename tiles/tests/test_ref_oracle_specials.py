"""The oracle on infinities, NaN, subnormals and the largest numbers: what may happen is always covered."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpwave as ww
from warpwave.tiles.dtypes import bf16, f16, f32, fp8e4m3, fp8e4m3fnuz, fp8e5m2, i8, i32
from warpwave.tiles.ir import OPS
from warpwave.tiles.ir.opdefs import TERMINATORS
from warpwave.tiles.reference import contract, functions, interpreter, oracle, shapes
from warpwave.tiles.reference.accumulation import matrix_product
from warpwave.tiles.reference.bounded import Bounded, certain
from warpwave.tiles.tests.legal_evaluation import evaluate_legally
from warpwave.tiles.tests.reference_harness import op_kernel

FLOATS = (f32, f16, bf16)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.3, 3e38, -3e38, 60000.0, 1e-42, 2.0**-130, 5e-8, math.inf, -math.inf, math.nan]


def unsure(x):
    """About the same numbers, no longer certain, and all the special ones."""
    return ww.where(ww.abs(x) < 8.0, ww.log(ww.exp(x)), x)


STEPS = {
    "unsure": unsure,
    "exp": ww.exp,
    "exp2": ww.exp2,
    "log": ww.log,
    "log2": ww.log2,
    "sqrt": ww.sqrt,
    "rsqrt": ww.rsqrt,
    "rcp": ww.rcp,
    "tanh": ww.tanh,
    "erf": ww.erf,
    "sigmoid": ww.sigmoid,
    "gelu": ww.gelu,
    "gelu_tanh": lambda x: ww.gelu(x, approximate=True),
    "silu": ww.silu,
    "relu": ww.relu,
    "neg": ww.neg,
    "abs": ww.abs,
    "square": lambda x: x * x,
    "double": lambda x: x + x,
    "twice less": lambda x: x - 2.0 * x,
    "inverse": lambda x: 1.0 / x,
    "ratio": lambda x: x / ww.sum(x, axis=0),
    "fma": lambda x: ww.fma(x, x, x),
    "flip": lambda x: ww.max(x, axis=0) - x,
    "skip nan": lambda x: ww.maximum(x, -1.0, nan="ignore"),
    "skip nan below": lambda x: ww.minimum(x, 2.0, nan="ignore"),
    "largest": lambda x: x * ww.max(x, axis=0, nan="ignore"),
    "least": lambda x: x + ww.min(x, axis=0, nan="ignore"),
    "prod": lambda x: x * ww.prod(x, axis=0),
    "cumsum": ww.cumsum,
    "suffix": lambda x: ww.cumsum(x, reverse=True, exclusive=True),
    "isnan": lambda x: ww.where(ww.isnan(x), 5.0, x),
    "select": lambda x: ww.where(x >= 0.3, x, -x),
    "not equal": lambda x: ww.where(x != 1.0, x, 7.0),
    "fp8": lambda x: ww.cast(ww.cast(x, fp8e4m3, saturate=False), x.dtype),
    "fnuz": lambda x: ww.cast(ww.cast(x, fp8e4m3fnuz), x.dtype),
    "fp8 up": lambda x: ww.cast(ww.cast(x, fp8e5m2, rounding="rtp"), x.dtype),
    "f16": lambda x: ww.cast(ww.cast(x, f16, rounding="rtz"), x.dtype),
    "int": lambda x: ww.cast(ww.cast(x, i32) + 1, x.dtype),
    "narrow int": lambda x: ww.cast(ww.cast(ww.cast(x, i32), i8), x.dtype),
    "int logic": lambda x: ww.cast(ww.cast(x, i32) & 7, x.dtype),
    "bits": lambda x: x + ww.cast(ww.bitcast(ww.cast(x, f32), i32) & 1, x.dtype),
    "order": lambda x: ww.cast(ww.sum(ww.cast(x < 0.5, i32), axis=0), x.dtype) + x,
    "both": lambda x: ww.where((x > 0.2) & ~(x > 0.4), 1.0, x),
    "matmul": lambda x: _outer(x),
}


def _outer(x):
    row = ww.cast(x, f16 if x.dtype == f16 else f32)[None, :]
    product = ww.mma_ABt(ww.zeros(ww.rt[f32, 1, 1]), row, row)
    return x + ww.cast(ww.sum(ww.sum(product, axis=1), axis=0), x.dtype)


def check_program(dtype, names, values, seed, mode):
    def program(x):
        for name in names:
            x = STEPS[name](x)
        return x

    with np.errstate(all="ignore"):
        x = np.array(values, dtype.numpy)
    kernel, _ = op_kernel(program, (x,))
    arguments = {"a0": x, "r0": np.zeros(x.shape, dtype.numpy)}
    estimate = oracle(kernel, arguments)["r0"]
    assert not np.isnan(estimate.bound).any()
    for repeat in range(3):
        actual = evaluate_legally(kernel, arguments, seed + repeat, mode)["r0"]
        assert estimate.agrees(actual).all(), (estimate.value, estimate.bound, actual)


programs = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5)
inputs = st.lists(st.sampled_from(SPECIAL) | st.floats(-4, 4, width=32), min_size=1, max_size=5)
modes = st.sampled_from(["nearest", "zero", "down"])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.sampled_from(FLOATS), programs, inputs, st.integers(0, 2**32), modes)
def test_programs_on_special_values_stay_inside(dtype, names, values, seed, mode):
    check_program(dtype, names, values, seed, mode)


@pytest.mark.sweep
@settings(max_examples=5000, deadline=None)
@given(st.sampled_from(FLOATS), programs, inputs, st.integers(0, 2**32), modes)
def test_many_programs_on_special_values_stay_inside(dtype, names, values, seed, mode):
    check_program(dtype, names, values, seed, mode)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", sorted(STEPS))
def test_each_step_on_every_special_value(name, dtype):
    for value in SPECIAL:
        check_program(dtype, [name], [value], 0, "nearest")
        check_program(dtype, ["unsure", name], [value, 1.0], 0, "zero")


def test_every_op_of_the_language_has_a_meaning_here():
    shared = {*shapes.REARRANGE, *interpreter._HANDLERS, *functions.FLOAT, *functions.INTEGER}
    assert set(OPS) - set(TERMINATORS) == shared | set(contract.OPS)


def test_the_oracle_gives_its_own_meaning_to_all_that_rounds_or_decides():
    module = import_module("warpwave.tiles.reference.oracle")
    own = {*module.OPS, *module.ACCUMULATING}
    assert set(contract.OPS) - own == {"iota", "random_bits"}


def test_the_sign_of_zero_decides_infinities():
    x = np.float32([0.0, -0.0])
    for dtype in FLOATS:
        check_program(dtype, ["log", "rcp", "inverse"], x, 0, "nearest")
        check_program(dtype, ["tanh", "inverse"], x, 0, "nearest")
        check_program(dtype, ["unsure", "fp8", "inverse"], [1e-6, -1e-6, 0.001], 0, "nearest")
        check_program(dtype, ["fnuz", "inverse"], [-1e-6, -0.0, 0.0, 1e-6], 0, "nearest")


def test_what_may_be_nan_stays_so_through_a_saturating_cast():
    x = np.linspace(0.1, 7, 64).astype(np.float32)
    kernel, _ = op_kernel(lambda t: ww.cast(ww.sqrt(unsure(t) - t), fp8e5m2), (x,))
    arguments = {"a0": x, "r0": np.zeros(64, fp8e5m2.numpy)}
    estimate = oracle(kernel, arguments)["r0"]
    results = [evaluate_legally(kernel, arguments, seed)["r0"] for seed in range(3)]
    assert np.isnan(np.stack(results).astype(np.float32)).any()
    assert all(estimate.agrees(r).all() for r in results)


def test_an_overflow_that_the_bounds_do_not_decide_may_be_nan():
    x = np.float32([4.0, 2.0])
    kernel, _ = op_kernel(lambda t: ww.cast(unsure(t) * 116.0, fp8e4m3, saturate=False), (x,))
    estimate = oracle(kernel, {"a0": x, "r0": np.zeros(2, fp8e4m3.numpy)})["r0"]
    assert np.isinf(estimate.bound).tolist() == [True, False]
    assert estimate.agrees(np.float32([np.nan, 240])).all()


@pytest.mark.parametrize(("terms", "known"), [([1e-30, 1e-30, math.inf], False), ([1e-20, 1e-18, math.inf], True)])
def test_a_product_that_may_underflow_before_it_meets_infinity_may_be_nan(terms, known):
    x = np.array(terms, np.float32)
    kernel, _ = op_kernel(lambda t: ww.prod(t, axis=0), (x,))
    estimate = oracle(kernel, {"a0": x, "r0": np.zeros(1, np.float32)})["r0"]
    assert estimate.agrees(np.float32([math.inf])).all()
    assert estimate.agrees(np.float32([math.nan])).all() != known


@pytest.mark.parametrize("limit", [math.inf, -math.inf])
def test_a_matrix_product_of_a_number_that_may_be_anything_with_infinity_may_be_anything(limit):
    unknown = Bounded(np.zeros((1, 1)), np.full((1, 1), -math.inf), np.full((1, 1), math.inf))
    other = certain(np.full((1, 1), limit))
    for a, b in ((unknown, other), (other, unknown)):
        with np.errstate(invalid="ignore"):
            assert matrix_product(certain(np.zeros((1, 1))), a, b, 2.0**-24).anything.all()


def test_a_matrix_product_is_nan_where_certain_elements_make_it_so():
    """Against all products written out; the first column of a, and with it a row of b, may be anything."""
    rng = np.random.default_rng(0)
    numbers = [0.0, -0.0, 1.0, -2.0, 3.0, math.inf, -math.inf]
    for _ in range(200):
        a, b, c = (
            rng.choice(numbers, shape, p=[0.1, 0.1, 0.3, 0.2, 0.1, 0.1, 0.1]) for shape in ((3, 4), (4, 5), (3, 5))
        )
        first = np.arange(4) == 0
        loose = Bounded(a, np.where(first, -math.inf, a), np.where(first, math.inf, a))
        with np.errstate(invalid="ignore"):
            terms = a[:, 1:, None] * b[None, 1:]
            known = np.isnan(c + terms.sum(axis=1))
            result = matrix_product(certain(c), loose, certain(b), 2.0**-24)
        assert (np.isnan(result.low) == known).all()
