"""What generated programs and hunts over all ops found, each as the shortest kernel that showed it."""

from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave.conformance.contract import TARGETS, allowed, execute_as
from warpwave.conformance.tests.test_cases import GFX942, GFX950, assert_within, by_reference, ran
from warpwave.conformance.verdicts import Level, judge, same_bits
from warpwave.tiles.reference import CONTRACT

SIMULATED = pytest.mark.parametrize("target", [GFX942, GFX950])


@ww.kernel
def sums(x: ww.gl, total: ww.gl, running: ww.gl, backwards: ww.gl, before: ww.gl):
    tile = ww.load(x, (0, 0), ww.rt[ww.f32, 3, 5])
    ww.store(total, (0,), ww.sum(tile, axis=1))
    ww.store(running, (0, 0), ww.cumsum(tile, axis=1))
    ww.store(backwards, (0, 0), ww.cumsum(tile, axis=1, reverse=True))
    ww.store(before, (0, 0), ww.cumsum(tile, axis=1, exclusive=True))


@SIMULATED
@pytest.mark.parametrize("columns", [5, 4])
def test_sums_of_negative_zeros_are_negative_zeros(target, columns):
    x = np.full((3, columns), -0.0, np.float32)
    outputs = {n: np.ones((3, columns), np.float32) for n in ("running", "backwards", "before")}
    arguments = {"x": x, "total": np.ones(3, np.float32), **outputs}
    own = assert_within(sums, target, arguments)
    expected = by_reference(sums, arguments)  # NumPy's own sum of them is +0
    assert all(same_bits(own[name], expected[name]).all() for name in ("total", *outputs))
    for name in ("running", "backwards"):
        assert np.signbit(own[name][:, 0]).all() == (name == "running" or columns == 5)
    assert np.signbit(own["total"]).all() == (columns == 5)  # the fifth column is outside x, and reads as +0
    assert not np.signbit(own["before"]).any()  # begins with +0


def test_a_sum_whose_zero_is_certain_has_one_sign():
    x = np.full((3, 5), -0.0, np.float32)
    arguments = {"x": x, "total": np.ones(3, np.float32)} | {n: x + 1 for n in ("running", "backwards", "before")}
    ir = sums.compile(**arguments, target="reference").ir
    estimates = allowed(ir, arguments, "reference")
    assert all((estimate.bound == 0).all() for estimate in estimates.values())


@ww.kernel
def limited(x: ww.gl, wide: ww.gl, same: ww.gl, untouched: ww.gl):
    tile = ww.load(x, (0,), ww.rv[x.dtype, 8])
    ww.store(wide, (0,), tile, saturate=True)
    ww.store(same, (0,), tile, saturate=True)
    ww.store(untouched, (0,), tile)


@pytest.mark.parametrize("target", ["reference", GFX942, GFX950])
@pytest.mark.parametrize("dtype", [ww.f16, ww.bf16, ww.f32, ww.fp8e5m2], ids=str)
def test_saturating_casts_limit_infinities_to_formats_that_hold_them(target, dtype):
    x = np.array([1, -0.0, np.inf, -np.inf, np.nan, 3, -4, 0], np.float32).astype(dtype.numpy)
    outputs = {"wide": np.zeros(8, np.float32), "same": np.zeros(8, dtype.numpy), "untouched": np.zeros(8, dtype.numpy)}
    own = ran(limited, target, {"x": x, **outputs})
    for name, largest in (("wide", float(np.finfo(np.float32).max)), ("same", dtype.max)):
        assert own[name].astype(np.float32)[2:4].tolist() == [largest, -largest]
        assert same_bits(np.delete(own[name], [2, 3]), np.delete(x, [2, 3]).astype(own[name].dtype)).all()
    assert same_bits(own["untouched"], x).all()


@ww.kernel
def narrow_chain(a: ww.gl, b: ww.gl, c: ww.gl, out: ww.gl, *, M, K, N, P):
    first = ww.mma_AB(ww.zeros(ww.rt[ww.f32, M, N]), ww.load(a, (0, 0), ww.rt[ww.f32, M, K]),
                      ww.load(b, (0, 0), ww.rt[ww.f32, K, N]))  # fmt: skip
    second = ww.mma_AB(ww.zeros(ww.rt[ww.f32, M, P]), first, ww.load(c, (0, 0), ww.rt[ww.f32, N, P]))
    ww.store(out, (0, 0), second)


@SIMULATED
@pytest.mark.parametrize("shape", [(2, 7, 24, 8), (16, 4, 20, 16), (5, 3, 40, 7)])
def test_second_product_of_a_chain_reads_no_lds_beyond_its_operand(target, shape):
    m, k, n, p = shape
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n), (n, p)))
    assert_within(narrow_chain, target, {"a": a, "b": b, "c": c, "out": np.zeros((m, p), np.float32)},
                  M=m, K=k, N=n, P=p)  # fmt: skip


@ww.kernel
def add_columns(x: ww.gl, out: ww.gl):
    n = ww.grid(x.cols)
    ww.atomic_add(out, (0,), ww.sum(ww.load(x, (0, n), ww.rt[ww.f32, 4, 1]), axis=0))


def test_atomic_sum_of_infinities_of_which_one_is_not_certain():
    # The second column's sum may overflow to -inf before its +inf is added: then NaN, otherwise inf.
    low = float(np.finfo(np.float32).min)
    x = np.array([[1.0, np.inf], [0.0, low], [0.0, low], [0.0, 0.0]], np.float32)
    arguments = {"x": x, "out": np.zeros(1, np.float32)}
    ir = add_columns.compile(**arguments, target="reference").ir
    estimate = allowed(ir, arguments, "reference")["out"]
    assert estimate.agrees(np.array([np.inf], np.float32)).all()
    assert estimate.agrees(np.array([np.nan], np.float32)).all()


@pytest.mark.parametrize("target", ["any", *TARGETS])
def test_atomic_sums_of_subnormals(target):
    numerics = TARGETS[target].numerics if target in TARGETS else CONTRACT
    x = np.full((4, 2), 2.0**-129, np.float32)
    arguments = {"x": x, "out": np.zeros(1, np.float32)}
    ir = add_columns.compile(**arguments, target="reference").ir
    estimate = allowed(ir, arguments, target)["out"]
    assert numerics.atomics_flush == (target == "any" or target.startswith("nvidia"))
    assert estimate.agrees(np.array([2.0**-126], np.float32)).all()
    assert estimate.agrees(np.array([0.0], np.float32)).all() == numerics.atomics_flush
    assert not estimate.agrees(np.array([2.0**-120], np.float32)).any()
    ordinary = {"x": np.ones((4, 2), np.float32), "out": np.zeros(1, np.float32)}
    assert allowed(ir, ordinary, target)["out"].bound == 0  # nothing is that small


@ww.kernel
def two_products(a: ww.gl, b: ww.gl, c: ww.gl, limits: ww.gl, out: ww.gl, other: ww.gl):
    limit = ww.load(limits, (0,), ww.rv[ww.f32, 8])
    left = ww.load(a, (0, 0), ww.rt[a.dtype, 8, 32])
    first = ww.mma_AB(ww.zeros(ww.rt[ww.f32, 8, 5]), left, ww.load(b, (0, 0), ww.rt[b.dtype, 32, 5]))
    second = ww.mma_ABt(ww.zeros(ww.rt[ww.f32, 8, 1]), left, ww.load(c, (0, 0), ww.rt[c.dtype, 1, 32]))
    ww.store(out, (0, 0), first / limit[:, None])
    ww.store(other, (0, 0), ww.maximum(second, limit[:, None]))


@SIMULATED
def test_what_follows_from_one_product_does_not_lay_out_another(target):
    rng = np.random.default_rng(1)
    a, b, c = (rng.standard_normal(s).astype(np.float16) for s in ((8, 32), (32, 5), (1, 32)))
    arguments = {"a": a, "b": b, "c": c, "limits": np.ones(8, np.float32)}
    outputs = {"out": np.zeros((8, 5), np.float32), "other": np.zeros((8, 1), np.float32)}
    assert_within(two_products, target, {**arguments, **outputs})


@ww.kernel
def centred(x: ww.gl, out: ww.gl):
    rows = ww.load(x, (0, 0), ww.rt[ww.f32, 3, 7])
    mean = ww.sum(rows, axis=1) * (1 / 7)
    ww.store(out, (0,), ww.sum(rows - mean[:, None], axis=1))


def test_a_zero_whose_sign_is_not_certain_may_have_either():
    x = np.random.default_rng(2).standard_normal((3, 7)).astype(np.float32)
    arguments = {"x": x, "out": np.zeros(3, ww.fp8e4m3.numpy)}  # what is left of the sum is far below fp8
    ir = centred.compile(**arguments, target="reference").ir
    estimate = allowed(ir, arguments, "any")["out"]
    for zeros in (np.zeros(3), -np.zeros(3)):
        got, exact = zeros.astype(ww.fp8e4m3.numpy), -zeros.astype(ww.fp8e4m3.numpy)
        assert judge("out", got, estimate, exact).level is Level.WITHIN


@ww.kernel
def shortened(a: ww.gl, b: ww.gl, out: ww.gl):
    left, right = ww.load(a, (0, 0), ww.rt[ww.f32, 16, 8]), ww.load(b, (0, 0), ww.rt[ww.f32, 8, 8])
    ww.store(out, (0, 0), ww.mma_AB(ww.zeros(ww.rt[ww.f32, 16, 8]), left, right, precision="tf32"))


@pytest.mark.parametrize("target", ["nvidia:sm80", "nvidia:sm90a"])
@pytest.mark.parametrize(
    ("left", "right"), [(np.finfo(np.float32).max, 0.0), (2.0**-149, 2.0**100), (2.0**-140, np.inf)], ids=str
)
def test_tf32_of_the_largest_is_infinite_and_of_subnormals_coarse(target, left, right):
    """As an H200 and its model have it: inf * 0 is NaN, and what is below 2**-137 becomes 0."""
    arguments = {"a": np.full((16, 8), left, np.float32), "b": np.full((8, 8), right, np.float32)}
    arguments["out"] = np.zeros((16, 8), np.float32)
    ir = shortened.compile(**arguments, target="reference").ir
    estimate = allowed(ir, arguments, target)["out"]
    execute_as(ir, arguments, target)
    assert estimate.agrees(arguments["out"]).all()


@ww.kernel
def either(x: ww.gl, a: ww.gl, b: ww.gl, chosen: ww.gl, bent: ww.gl):
    beyond = ww.exp(ww.load(x, (0,), ww.rv[ww.f32, 4])) > 2.7182817  # which is e: nobody knows
    tile = ww.where(beyond, ww.load(a, (0,), ww.rv[ww.f32, 4]), ww.load(b, (0,), ww.rv[ww.f32, 4]))
    ww.store(chosen, (0,), tile)
    ww.store(bent, (0,), ww.gelu(tile))


@pytest.mark.parametrize("first", [0.0, -0.0])
def test_a_zero_that_a_condition_chose_which_is_not_certain_may_have_either_sign(first):
    a = np.full(4, first, np.float32)
    arguments = {"x": np.ones(4, np.float32), "a": a, "b": -a, "chosen": a + 1, "bent": a + 1}
    ir = either.compile(**arguments, target="reference").ir
    estimates = allowed(ir, arguments, "any")
    assert all((estimates[name].bound > 0).all() for name in ("chosen", "bent"))


@ww.kernel
def differences(x: ww.gl, y: ww.gl, quotient: ww.gl, larger: ww.gl, product: ww.gl, carried: ww.gl, counted: ww.gl):
    tile, other = (ww.load(t, (0,), ww.rv[x.dtype, 128]) for t in (x, y))
    ww.store(quotient, (0,), other / (0.0 - tile))
    ww.store(larger, (0,), ww.maximum(0.0 - tile, other))
    ww.store(product, (0,), (0.0 + -tile) * other)
    rest = ww.zeros(ww.rv[x.dtype, 128])
    numbers = ww.zeros(ww.rv[x.dtype, 128])
    for i in ww.range(3):
        rest = rest - ww.load(x, (i,), ww.rv[x.dtype, 128])
        numbers = numbers + other / (ww.cast(i, x.dtype) - tile)
    ww.store(carried, (0,), rest * other)
    ww.store(counted, (0,), numbers)


@SIMULATED
@pytest.mark.parametrize("dtype", [ww.f32, ww.f16], ids=str)
def test_zero_minus_zero_is_not_minus_zero_where_an_operand_can_be_negated(target, dtype):
    rng = np.random.default_rng(0)
    numbers = np.array([0.0, -0.0, 1.0, -1.0])
    arguments = {n: numbers[rng.integers(0, 4, size)].astype(dtype.numpy) for n, size in (("x", 384), ("y", 128))}
    outputs = ("quotient", "larger", "product", "carried", "counted")
    arguments |= {n: np.full(128, 7).astype(dtype.numpy) for n in outputs}
    own, expected = ran(differences, target, arguments), by_reference(differences, arguments)
    assert [n for n in outputs if not same_bits(own[n], expected[n]).all()] == []
