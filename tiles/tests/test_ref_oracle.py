"""The oracle's bounds: every legal evaluation is inside, real defects are outside, and they are not loose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpwave as ww
from warpwave.tiles.dtypes import bf16, f16, f32, fp8e4m3, fp8e5m2fnuz, i8, i32
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.reference import CONTRACT, Allowance, Numerics, execute, oracle
from warpwave.tiles.tests import oracle_kernels as kernels
from warpwave.tiles.tests.legal_evaluation import evaluate_legally
from warpwave.tiles.tests.reference_harness import captured, judge, op_kernel

FLOATS = (f32, f16, bf16)
MODES = ("nearest", "zero", "down")


def normal(shape, dtype=f32, seed=0, scale=1.0):
    return (np.random.default_rng(seed).normal(0, scale, shape)).astype(np.float32).astype(dtype.numpy)


def gemm_arguments(seed=0, dtype=bf16, out=f32, shape=(19, 21, 50)):
    m, n, k = shape
    return {"a": normal((m, k), dtype, seed), "b": normal((n, k), dtype, seed + 1), "c": np.zeros((m, n), out.numpy)}


def softmax_arguments(seed=0):
    x = normal((13, 40), f32, seed, 3.0)
    return {"x": x, "y": np.zeros_like(x)}


def layernorm_arguments(seed=0):
    return {
        "x": normal((7, 27), f32, seed) + np.float32(0.5),
        "w": normal((27,), f32, 9),
        "y": np.zeros((7, 27), np.float32),
    }


def attention_arguments(seed=0):
    q, k, v = normal((21, 16), bf16, seed), normal((19, 16), bf16, seed + 1), normal((19, 16), bf16, seed + 2)
    return {"q": q, "k": k, "v": v, "o": np.zeros((21, 16), np.float32)}


PROGRAMS = {
    "gemm": (kernels.gemm, gemm_arguments),
    "softmax": (kernels.softmax, softmax_arguments),
    "layernorm": (kernels.layernorm, layernorm_arguments),
    "attention": (kernels.attention, attention_arguments),
}


def bounds_and_kernel(name, seed=0):
    function, make = PROGRAMS[name]
    arguments = make(seed)
    kernel = captured(function, arguments)
    return kernel, arguments, oracle(kernel, arguments)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_legal_evaluations_are_inside(name, mode):
    kernel, arguments, estimates = bounds_and_kernel(name)
    for seed in range(4):
        for output, actual in evaluate_legally(kernel, arguments, seed, mode).items():
            assert estimates[output].agrees(actual).all()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_interpreter_is_inside_and_inputs_are_untouched(name):
    kernel, arguments, _ = bounds_and_kernel(name)
    before = {n: a.copy() for n, a in arguments.items()}
    estimates = oracle(kernel, arguments)
    for n, a in before.items():
        np.testing.assert_array_equal(arguments[n].view(np.uint8), a.view(np.uint8))
    execute(kernel, arguments)
    for output, estimate in estimates.items():
        assert estimate.agrees(arguments[output]).all()
        assert estimate.undecided is None
        assert np.isfinite(estimate.bound).all()


DEFECTS = [
    ("gemm", "missing block"),
    ("gemm", "off by one"),
    ("softmax", "no fill"),
    ("softmax", "epsilon"),
    ("layernorm", "dropped mask"),
    ("layernorm", "unbiased"),
    ("attention", "not causal"),
    ("attention", "no rescale"),
]


@pytest.mark.parametrize(("name", "defect"), DEFECTS)
def test_defects_are_outside(name, defect):
    _, arguments, estimates = bounds_and_kernel(name)
    execute(captured(PROGRAMS[name][0], arguments, defect=defect), arguments)
    (output,) = estimates
    assert (~estimates[output].agrees(arguments[output])).sum() > 3


def test_a_truncating_cast_is_outside():
    arguments = gemm_arguments(out=bf16)
    estimate = oracle(captured(kernels.gemm, arguments), arguments)["c"]
    execute(captured(kernels.gemm, arguments, defect="truncating cast"), arguments)
    wrong = ~estimate.agrees(arguments["c"])
    assert wrong.mean() > 0.3


def test_a_softmax_without_its_maximum_is_right_or_outside():
    arguments = softmax_arguments()
    estimate = oracle(captured(kernels.softmax, arguments), arguments)["y"]
    execute(captured(kernels.softmax, arguments, defect="no maximum"), arguments)
    assert estimate.agrees(arguments["y"]).all()
    arguments["x"][0] += 200
    estimate = oracle(captured(kernels.softmax, arguments), arguments)["y"]
    execute(captured(kernels.softmax, arguments, defect="no maximum"), arguments)
    assert not estimate.agrees(arguments["y"][:1]).all()


def observed_over_bound(name, seeds=3):
    ratios = []
    for seed in range(seeds):
        kernel, arguments, estimates = bounds_and_kernel(name, seed)
        for mode in MODES:
            for output, actual in evaluate_legally(kernel, arguments, seed, mode).items():
                value, bound = estimates[output]
                ratios.append(np.abs(actual.astype(np.float64) - value)[bound > 0] / bound[bound > 0])
    return np.concatenate(ratios)


# The worst observed error over the bound, to keep bounds from growing loose unnoticed.
TIGHTNESS = {"gemm": 0.02, "softmax": 0.05, "layernorm": 0.05, "attention": 0.02}


@pytest.mark.parametrize("name", PROGRAMS)
def test_bounds_are_not_absurdly_loose(name, record_property):
    ratios = observed_over_bound(name)
    record_property("worst observed / bound", float(ratios.max()))
    record_property("median observed / bound", float(np.median(ratios)))
    assert TIGHTNESS[name] < ratios.max() <= 1


def test_relative_bounds_of_softmax_and_gemm_are_small():
    _, _, estimates = bounds_and_kernel("softmax")
    value, bound = estimates["y"]
    assert (bound / np.abs(value)).max() < 3e-5
    _, arguments, estimates = bounds_and_kernel("gemm")
    value, bound = estimates["c"]
    size = np.abs(arguments["a"].astype(np.float64)) @ np.abs(arguments["b"].astype(np.float64)).T
    assert (bound / size).max() < 4 * 50 * 2.0**-24


# -- what is exact stays exact ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_basic_operations_on_inputs_are_certain(dtype):
    a, b = normal((40,), dtype, 1), normal((40,), dtype, 2)
    for op in (
        lambda x, y: x + y,
        lambda x, y: x * y - x / y,
        lambda x, y: ww.sqrt(ww.abs(x)),
        lambda x, y: ww.fma(x, y, x),
        lambda x, y: ww.cast(ww.cast(x, fp8e4m3), f32),
        lambda x, y: ww.where(x > y, ww.maximum(x, y), ww.round(x)),
    ):
        estimate, actual = judge(op, a, b)
        assert (estimate.bound == 0).all()
        np.testing.assert_array_equal(actual.astype(np.float64), estimate.value)


def test_sums_of_integers_are_certain():
    x = np.random.default_rng(0).integers(-8, 9, (5, 64)).astype(np.float32)
    for op in (
        lambda t: ww.sum(t, axis=1),
        lambda t: ww.cumsum(t, axis=1),
        lambda t: ww.mma_ABt(ww.zeros(ww.rt[f32, 5, 5]), t, t),
    ):
        estimate, actual = judge(op, x)
        assert (estimate.bound == 0).all()
        np.testing.assert_array_equal(actual, estimate.value)


def test_integers_and_bits_are_certain():
    x = np.random.default_rng(0).integers(-128, 128, (8, 8)).astype(np.int8)
    y = np.random.default_rng(1).integers(-(2**31), 2**31, (8, 8)).astype(np.int32)
    for op, args in (
        (lambda a: a * a + 3, (x,)),
        (lambda a: ww.mma_AB(ww.zeros(ww.rt[i32, 8, 8]), a, a), (x,)),
        (lambda a: ww.sum(a, axis=0), (x,)),
        (lambda a: (a ^ (a << 3)) % 1000, (y,)),
        (lambda a: ww.random_bits(ww.rt[i32, 8, 8], 5) + a, (y,)),
        (lambda a: ww.cast(a, i8), (y,)),
    ):
        estimate, actual = judge(op, *args)
        assert (estimate.bound == 0).all()
        np.testing.assert_array_equal(actual, estimate.value)


def test_masked_zeros_of_exp_are_certain():
    x = np.float32([-np.inf, 0.0, np.nan, np.inf])
    estimate, actual = judge(ww.exp, x)
    np.testing.assert_array_equal(estimate.value, [0, 1, np.nan, np.inf])
    assert (estimate.bound == 0).all()
    assert estimate.agrees(actual).all()
    assert not estimate.agrees(np.float32([1e-30, 1.0000001, 0, 3e38])).any()


# -- random programs ----------------------------------------------------------------------------------

UNARY = {
    "exp": lambda x: ww.exp(ww.clamp(x, -20.0, 8.0)),
    "log": lambda x: ww.log(ww.abs(x) + 0.5),
    "tanh": ww.tanh,
    "gelu": ww.gelu,
    "gelu_tanh": lambda x: ww.gelu(x, approximate=True),
    "silu": ww.silu,
    "sigmoid": ww.sigmoid,
    "erf": ww.erf,
    "rsqrt": lambda x: ww.rsqrt(x * x + 0.25),
    "rcp": lambda x: ww.rcp(ww.abs(x) + 1.0),
    "relu": ww.relu,
    "neg": ww.neg,
    "centre": lambda x: x - ww.sum(x, axis=0) * 0.125,
    "normalise": lambda x: x / (ww.max(ww.abs(x), axis=0) + 1.0),
    "to bf16": lambda x: ww.cast(ww.cast(x, bf16), x.dtype),
    "to fp8": lambda x: ww.cast(ww.cast(x, fp8e5m2fnuz), x.dtype),
    "where": lambda x: ww.where(x > 0.3, x, x * x),
    "floor": ww.floor,
    "cumsum": lambda x: ww.cumsum(x) * 0.25,
    "through int": lambda x: ww.cast(ww.cast(x * 3.0, i32), x.dtype),
    "count": lambda x: x + ww.cast(x > 0.1, x.dtype),
}


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    st.sampled_from(FLOATS),
    st.lists(st.sampled_from(sorted(UNARY)), min_size=1, max_size=5),
    st.integers(0, 2**32),
    st.sampled_from(MODES),
)
def test_random_programs_stay_inside(dtype, names, seed, mode):
    def program(x):
        for name in names:
            x = UNARY[name](x)
        return x

    x = normal((8,), dtype, seed, 2.0)
    kernel, _ = op_kernel(program, (x,))
    arguments = {"a0": x, "r0": np.zeros(8, dtype.numpy)}
    estimate = oracle(kernel, arguments)["r0"]
    for repeat in range(3):
        actual = evaluate_legally(kernel, arguments, seed + repeat, mode)["r0"]
        assert estimate.agrees(actual).all(), (estimate.value, estimate.bound, actual)


@pytest.mark.sweep
@settings(max_examples=3000, deadline=None)
@given(
    st.sampled_from(FLOATS),
    st.lists(st.sampled_from(sorted(UNARY)), min_size=1, max_size=6),
    st.integers(0, 2**32),
    st.sampled_from(MODES),
)
def test_many_random_programs_stay_inside(dtype, names, seed, mode):
    test_random_programs_stay_inside.hypothesis.inner_test(dtype, names, seed, mode)


# -- uncertainty --------------------------------------------------------------------------------------


def unsure(x):
    """The same numbers, known only to the accuracy of tanh and its inverse."""
    return ww.log(ww.exp(x))


def test_comparisons_that_the_bounds_do_not_decide_cover_both():
    x = np.float32([-1, 0.5, 2, 0.25])
    estimate, _ = judge(lambda t: ww.where(unsure(t) > 0.5, 100.0, 3.0), x)
    assert estimate.agrees(np.float32([3, 100, 100, 3])).all()
    assert estimate.agrees(np.float32([3, 3, 100, 3])).all()
    assert not estimate.agrees(np.float32([100, 3, 3, 100]))[[0, 2, 3]].any()


def test_overflow_within_the_bound_may_be_infinite():
    largest = np.finfo(np.float32).max
    x = np.float32([1.0, 0.5, 2.0])
    estimate, actual = judge(lambda t: ww.exp(t) * float(largest / np.float32(np.e)), x)
    assert estimate.agrees(actual).all()
    assert np.isinf(estimate.bound).tolist() == [True, False, False]
    assert estimate.agrees(np.array([largest, actual[1], np.inf], np.float32)).all()
    assert estimate.agrees(np.array([np.inf, actual[1], np.inf], np.float32)).all()
    assert not estimate.agrees(np.array([0, np.inf, largest], np.float32))[1:].any()


def test_square_roots_of_numbers_that_may_be_negative_are_unknown():
    estimate, _ = judge(lambda t: ww.sqrt(unsure(t) - 0.5), np.float32([0.5, 0.75]))
    assert np.isinf(estimate.bound).tolist() == [True, False]


def test_an_undecided_branch_is_flagged_and_bounds_nothing():
    x = normal((8,))
    out = np.zeros(8, np.float32)
    kernel = captured(kernels.negative_branch, {"x": x, "out": out})
    decided = oracle(kernel, {"x": np.abs(x), "out": out})["out"]
    assert decided.undecided is None
    assert (decided.bound == 0).all()
    x = np.float32([1e8, 1, -1e8, -1, 0, 0, 0, 0])
    undecided = oracle(kernel, {"x": x, "out": out})["out"]
    assert undecided.undecided is not None
    assert "oracle_kernels.py" in undecided.undecided.file
    assert np.isinf(undecided.bound).all()


def test_bools_stored_as_integers():
    x = np.float32([0, 1, 0.5, 2, -1, 1.5, 0.999, 1.001])
    arguments = {"x": x, "out": np.zeros(8, np.int32)}
    kernel = captured(kernels.flags, arguments)
    estimate = oracle(kernel, arguments)["out"]
    execute(kernel, arguments)
    assert estimate.agrees(arguments["out"]).all()
    assert not estimate.agrees(1 - arguments["out"]).any()


@pytest.mark.parametrize("dtype", [f32, bf16, f16], ids=str)
def test_atomic_adds_in_any_order_are_inside(dtype):
    arguments = {"x": normal((160,), dtype), "out": normal((8,), dtype, 3)}
    kernel = captured(kernels.histogram, arguments)
    estimate = oracle(kernel, arguments)["out"]
    for seed in range(5):
        assert estimate.agrees(evaluate_legally(kernel, arguments, seed)["out"]).all()
    arguments["x"][3] += dtype.numpy.type(2)
    wrong = evaluate_legally(kernel, arguments, 0)["out"]
    assert dtype != f32 or not estimate.agrees(wrong)[3]


def test_atomic_adds_of_integers_are_exact():
    arguments = {"x": np.full(8 * 1024, 1, np.float32), "out": np.zeros(8, np.float32)}
    estimate = oracle(captured(kernels.histogram, arguments), arguments)["out"]
    np.testing.assert_array_equal(estimate.value, 1024)
    assert (estimate.bound == 0).all()


def test_what_is_not_written_must_stay():
    arguments = gemm_arguments()
    padded = np.full((64, 64), 7, np.float32)
    arguments["c"] = padded[10:29, 5:26]
    estimate = oracle(captured(kernels.gemm, arguments), arguments)["c"]
    assert estimate.value.shape == (19, 21)
    assert (padded == 7).all()
    empty = gemm_arguments(shape=(0, 4, 4))
    value, bound = oracle(captured(kernels.gemm, empty), empty)["c"]
    assert value.shape == bound.shape == (0, 4)


def increment(x, out):
    m = ww.grid(ww.cdiv(x.cols, 4))
    ww.store(out, (m,), ww.load(x, (m,), ww.rv[f32, 4]) + 1.0)
    ww.store(out, (m,), ww.load(x, (m,), ww.rv[f32, 4]) + 1.0)


def test_one_array_in_two_arguments_is_one_storage():
    x = np.zeros(8, np.float32)
    kernel = captured(increment, {"x": x, "out": x})
    np.testing.assert_array_equal(oracle(kernel, {"x": x, "out": x})["out"].value, 2)
    execute(kernel, {"x": x, "out": x})
    np.testing.assert_array_equal(x, 2)
    with pytest.raises(UnsupportedError, match="overlaps"):
        oracle(kernel, {"x": x[1:], "out": x[:-1]})


def test_tf32_may_shorten_its_operands():
    a, b = normal((4, 64)), normal((4, 64), seed=1)

    def product(x, y, precision):
        return ww.mma_ABt(ww.zeros(ww.rt[f32, 4, 4]), x, y, precision=precision)

    short_a, short_b = ((x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for x in (a, b))
    shortened = (short_a.astype(np.float64) @ short_b.astype(np.float64).T).astype(np.float32)
    loose, _ = judge(lambda x, y: product(x, y, "tf32"), a, b)
    tight, _ = judge(lambda x, y: product(x, y, "ieee"), a, b)
    assert loose.agrees(shortened).all()
    assert tight.agrees(shortened).mean() < 0.2
    already_short, _ = judge(lambda x, y: product(x, y, "tf32"), short_a, short_b)
    assert (already_short.bound < loose.bound / 20).all()


@pytest.mark.parametrize("dtype", [f32, bf16], ids=str)
def test_specials_in_sums_and_products(dtype):
    x = np.array([[1, np.inf, 2], [np.inf, -np.inf, 0], [np.nan, 1, 2], [1, 2, 3]], np.float32).astype(dtype.numpy)
    with np.errstate(invalid="ignore"):
        estimate, actual = judge(lambda t: ww.sum(t, axis=1), x)
        np.testing.assert_array_equal(estimate.value, [np.inf, np.nan, np.nan, 6])
        assert (estimate.bound == 0).all()
        assert estimate.agrees(actual).all()
        assert not estimate.agrees(np.float32([1, 2, 3, 4])).any()
        estimate, actual = judge(lambda t: ww.mma_ABt(ww.zeros(ww.rt[f32, 4, 4]), t, t), x)
        assert estimate.agrees(actual).all()
        assert (estimate.bound[2] == 0).all()
        estimate, actual = judge(lambda t: ww.prod(t, axis=1), x)
        assert estimate.agrees(actual).all()


# -- targets that lose more ---------------------------------------------------------------------------


def aligned_product(a, b, bits, smallest=0.0, total=0.0, cut=np.trunc):
    """Products of one row pair aligned to the largest, cut to `bits` fraction bits, 16 at a time."""
    for start in range(0, len(a), 16):
        terms = [total, *(a[start : start + 16] * b[start : start + 16])]
        quantum = 2.0 ** (np.floor(np.log2(max(*np.abs(terms), smallest))) - bits)
        total = float(np.float32(sum(cut(t / quantum) * quantum for t in terms)))
    return total


def estimate_product(a, b, numerics, start=0.0):
    kernel, _ = op_kernel(lambda x, y: ww.mma_ABt(ww.full(ww.rt[f32, 4, 4], start), x, y), (a, b))
    return oracle(kernel, {"a0": a, "a1": b, "r0": np.zeros((4, 4), np.float32)}, numerics=numerics)["r0"]


def test_a_target_may_accumulate_a_format_in_fewer_bits():
    a, b = normal((4, 64), fp8e4m3, 1), normal((4, 64), fp8e4m3, 2)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    short = np.array([[aligned_product(p, q, 13) for q in wide_b] for p in wide_a])
    assert estimate_product(a, b, CONTRACT).agrees(short).mean() < 0.3
    relaxed = Numerics(product_losses={"fp8e4m3": 2.0**-13})
    assert estimate_product(a, b, relaxed).agrees(short).all()
    half = normal((4, 64), bf16, 1), normal((4, 64), bf16, 2)
    np.testing.assert_array_equal(estimate_product(*half, relaxed).bound, estimate_product(*half, CONTRACT).bound)


def test_a_target_may_align_subnormals_to_the_smallest_normal():
    a, b, start = normal((4, 16), f16, 1, 1e-6), normal((4, 16), f16, 2, 1e-6), float(np.float32(-1e-44))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    down = {"smallest": 2.0**-28, "total": start, "cut": np.floor}
    short = np.array([[aligned_product(p, q, 24, **down) for q in wide_b] for p in wide_a])
    assert not estimate_product(a, b, CONTRACT, start).agrees(short).any()
    assert estimate_product(a, b, Numerics(unnormalised=frozenset(["f16"])), start).agrees(short).all()


def test_a_target_may_have_a_less_accurate_function():
    x = np.linspace(-3, 3, 64).astype(np.float32)
    kernel, _ = op_kernel(ww.tanh, (x,))
    arguments = {"a0": x, "r0": np.zeros(64, np.float32)}
    coarse = (np.tanh(x.astype(np.float64)) * (1 + 2.0**-12)).astype(np.float32)
    assert not oracle(kernel, arguments)["r0"].agrees(coarse).any()
    relaxed = Numerics(functions={**CONTRACT.functions, "tanh": Allowance(2**12)})
    assert oracle(kernel, arguments, numerics=relaxed)["r0"].agrees(coarse).all()
