"""Reported failures of other tools, by number (docs/cases.md), on code compiled for AMD and run by the simulator.

What is checked on the reference alone is in tiles/tests/test_cases.py and kernels/tests.
"""

from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave.conformance.contract import allowed
from warpwave.conformance.metamorphic import check
from warpwave.conformance.placement import place
from warpwave.conformance.verdicts import Level, judge, same_bits
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm
from warpwave.kernels.layernorm import dropout_residual_layernorm
from warpwave.kernels.softmax import softmax
from warpwave.tiles.errors import TileError
from warpwave.tiles.tests import case_kernels

GFX942, GFX950 = "amd:gfx942:sim", "amd:gfx950:sim"
MORE = pytest.mark.sweep
GFX942_FIRST = pytest.mark.parametrize("target", [GFX942, pytest.param(GFX950, marks=MORE)])
GFX950_FIRST = pytest.mark.parametrize("target", [pytest.param(GFX942, marks=MORE), GFX950])


def normal(shape, dtype=ww.f32, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32).astype(dtype.numpy)


def ran(kernel, target, arguments, **constants):
    """The arguments after a run on copies that lie in memory as they do."""
    own = {n: a.copy(order="K") if isinstance(a, np.ndarray) else a for n, a in arguments.items()}
    kernel.compile(**own, **constants, target=target).run(**own)
    return own


def by_reference(kernel, arguments, **constants):
    return ran(kernel, "reference", arguments, **constants)


def assert_within(kernel, target, arguments, **constants):
    """Every output is as the contract allows on the target; the outputs."""
    own = ran(kernel, target, arguments, **constants)
    ir = kernel.compile(**arguments, **constants, target=target).ir
    estimates = allowed(ir, {n: arguments[n] for n in ir.param_names}, target)
    for name, estimate in estimates.items():
        verdict = judge(name, own[name], estimate)
        assert verdict.level in (Level.BIT_EXACT, Level.WITHIN), verdict
    return own


@ww.kernel
def apply(x: ww.gl, out: ww.gl, *, op, N=512):
    i = ww.grid(ww.cdiv(x.cols, N))
    ww.store(out, (i,), op(ww.load(x, (i,), ww.rv[x.dtype, N])))


@ww.kernel
def apply_two(x: ww.gl, y: ww.gl, out: ww.gl, *, op, N=512):
    i = ww.grid(ww.cdiv(x.cols, N))
    ww.store(out, (i,), op(ww.load(x, (i,), ww.rv[x.dtype, N]), ww.load(y, (i,), ww.rv[y.dtype, N])))


def applied(target, op, *inputs, dtype=None):
    kernel = apply if len(inputs) == 1 else apply_two
    out = np.zeros(inputs[0].shape, (dtype.numpy if dtype else inputs[0].dtype))
    return ran(kernel, target, {**dict(zip("xy", inputs, strict=False)), "out": out}, op=op)["out"]


# -- formats ------------------------------------------------------------------------------------------


@GFX942_FIRST
def test_case_02_the_dtype_says_the_format_whatever_the_target_has(target):
    x = np.array([1, 2, 448], np.float32).astype(ww.fp8e4m3.numpy)
    assert applied(target, lambda t: ww.cast(t, ww.f32), x, dtype=ww.f32).tolist() == [1, 2, 448]
    y = np.array([1, 2, 240], np.float32).astype(ww.fp8e4m3fnuz.numpy)
    assert applied(target, lambda t: ww.cast(t, ww.f32), y, dtype=ww.f32).tolist() == [1, 2, 240]


@pytest.mark.parametrize(("target", "dtype"), [(GFX942, ww.fp8e4m3), (GFX950, ww.fp8e4m3fnuz)], ids=str)
def test_case_03_a_product_in_a_format_that_the_target_lacks_is_as_exact_as_in_f16(target, dtype):
    """f16 holds every value of fp8, so that the product is the same, bit for bit."""
    given = {"a": normal((32, 32), dtype, 1), "b": normal((32, 32), dtype, 2), "c": np.zeros((32, 32), np.float32)}
    own = assert_within(gemm, target, given, BM=32, BN=32, BK=32)
    halves = {**given, **{n: given[n].astype(np.float16) for n in "ab"}}
    assert same_bits(own["c"], ran(gemm, target, halves, BM=32, BN=32, BK=32)["c"]).all()


@pytest.mark.parametrize("dtype", [ww.fp8e4m3, ww.fp8e4m3fnuz], ids=str)
def test_case_12_moving_fp8_moves_bits(dtype):
    codes = np.arange(256, dtype=np.uint8).view(dtype.numpy)
    moved = applied(GFX942, lambda t: ww.interleave(*ww.deinterleave(t)), codes)
    assert (moved.view(np.uint8) == codes.view(np.uint8)).all()


# -- rounding and functions ---------------------------------------------------------------------------


@GFX950_FIRST
def test_case_15_a_chain_of_72_additions_does_not_drift(target):
    """Truncation shrinks a residual; rounding to nearest does not. One step is the reference's, bit for bit."""
    step = ww.kernel(lambda_step)
    residual = {"r": normal((4, 256), ww.bf16, 1, 30.0), "x": normal((4, 256), ww.bf16, 2)}
    exact = residual["r"].astype(np.float64)
    compiled = step.compile(**residual, target=target)
    expected = residual["r"].copy()
    for seed in range(72):
        residual["x"] = normal((4, 256), ww.bf16, seed)
        exact += residual["x"].astype(np.float64)
        expected = (expected.astype(np.float32) + residual["x"].astype(np.float32)).astype(ww.bf16.numpy)
        compiled.run(**residual)
    assert same_bits(residual["r"], expected).all()
    drift = ((np.abs(residual["r"].astype(np.float64)) - np.abs(exact)) / np.abs(exact)).mean()
    assert abs(drift) < 2.0**-9  # truncation loses about 72 * 2^-9


def lambda_step(x: ww.gl, r: ww.gl, *, R=4, C=256):
    total = ww.load(r, (0, 0), ww.rt[r.dtype, R, C]) + ww.load(x, (0, 0), ww.rt[x.dtype, R, C])
    ww.store(r, (0, 0), total)


@GFX942_FIRST
def test_case_16_ties_go_to_even_unless_another_rounding_is_named(target):
    high = np.arange(0x3F00, 0x4100, dtype=np.uint32) << 16
    x = np.concatenate([high | 0x8000, high | 0x7FFF, high | 0x8001]).view(np.float32)
    got = applied(target, lambda t: ww.cast(t, ww.bf16), x, dtype=ww.bf16)
    np.testing.assert_array_equal(got.view(np.uint16), x.astype(ww.bf16.numpy).view(np.uint16))
    cut = applied(target, lambda t: ww.cast(t, ww.bf16, rounding="rtz"), x, dtype=ww.bf16)
    np.testing.assert_array_equal(cut.view(np.uint16), x.view(np.uint32) >> 16)


@GFX950_FIRST
def test_case_18_a_bf16_product_is_the_rounded_exact_product(target):
    bits = np.random.default_rng(0).integers(0, 1 << 16, (2, 16384), np.uint16)
    x, y = (b.view(ww.bf16.numpy) for b in bits)
    with np.errstate(all="ignore"):
        want = (x.astype(np.float64) * y.astype(np.float64)).astype(np.float32).astype(ww.bf16.numpy)
    assert same_bits(applied(target, lambda a, b: a * b, x, y), want).all()


@GFX942_FIRST
def test_case_21_division_and_roots_are_correctly_rounded(target):
    rng = np.random.default_rng(1)
    x, y = (rng.integers(0, 1 << 32, 16384, np.uint64).astype(np.uint32) for _ in range(2))
    y[:2048] &= 0x807FFFFF  # subnormal divisors
    x, y = x.view(np.float32), y.view(np.float32)
    with np.errstate(all="ignore"):
        quotient, root = x / y, np.sqrt(np.abs(x))
    assert same_bits(applied(target, lambda a, b: a / b, x, y), quotient).all()
    assert same_bits(applied(target, ww.sqrt, np.abs(x)), root).all()


@GFX950_FIRST
def test_case_23_functions_keep_their_stated_bounds(target):
    points = np.concatenate([np.linspace(-87, 88, 4096), [1e-40, -1e-40, 2.0**-126, 0.0]]).astype(np.float32)
    assert_within(apply, target, {"x": points, "out": np.zeros_like(points)}, op=ww.exp)
    for op in (ww.log, ww.rsqrt):
        assert_within(apply, target, {"x": np.abs(points), "out": np.zeros_like(points)}, op=op)


@pytest.mark.parametrize("dtype", [ww.f16, pytest.param(ww.bf16, marks=MORE)], ids=str)
def test_case_26_matrix_units_do_not_flush_subnormals(dtype):
    """2^k g times the identity, over 2^k, is the same for all k."""
    smallest = 2.0**-24 if dtype == ww.f16 else 2.0**-133
    g = (np.random.default_rng(2).integers(-900, 900, (16, 32)) % 100 * smallest).astype(dtype.numpy)
    one, out = np.eye(32).astype(dtype.numpy), np.zeros((16, 32), np.float32)
    for k in (0, 3, 8):
        scaled = np.ldexp(g.astype(np.float64), k).astype(dtype.numpy)
        got = ran(gemm, GFX942, {"a": scaled, "b": one, "c": out}, BM=16, BN=32, BK=32)["c"]
        np.testing.assert_array_equal(np.ldexp(got.astype(np.float64), -k), g.astype(np.float64))


def test_case_27_a_long_positive_sum_has_no_bias():
    """4096 products of f32, added one by one and rounded to nearest: the mean error is far below its size."""
    a, b = (np.random.default_rng(s).uniform(0.5, 1, (16, 4096)).astype(np.float32) for s in (1, 2))
    got = assert_within(
        gemm, GFX942, {"a": a, "b": b, "c": np.zeros((16, 16), np.float32)}, BM=16, BN=16, BK=64, transpose_b=True
    )["c"]
    error = got.astype(np.float64) - a.astype(np.float64) @ b.astype(np.float64).T
    assert abs(error.mean()) < 0.5 * np.abs(error).mean()


@GFX942_FIRST
def test_case_28_a_product_of_f32_keeps_f32(target):
    a, b = normal((64, 256), seed=1), normal((64, 256), seed=2)
    got = assert_within(
        gemm, target, {"a": a, "b": b, "c": np.zeros((64, 64), np.float32)}, BM=64, BN=64, BK=32, transpose_b=True
    )["c"]
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    short = [(x.view(np.uint32) >> 13 << 13).view(np.float32).astype(np.float64) for x in (a, b)]
    assert np.abs(got - exact).max() < np.abs(short[0] @ short[1].T - exact).max() / 50


@pytest.mark.parametrize("shape", [(32, 64, 16), pytest.param((128, 256, 64), marks=MORE)], ids=str)
def test_case_30_a_small_product_with_gelu(shape):
    m, n, k = shape
    arguments = {"a": normal((m, k), ww.bf16, 1), "b": normal((n, k), ww.bf16, 2), "c": np.zeros((m, n), np.float32)}
    assert_within(ww.kernel(case_kernels.gemm_gelu), GFX942, arguments)


# -- NaN, determinism, random numbers -----------------------------------------------------------------


def attention_arguments(queries=20, keys=17, width=32, heads=2):
    q, k, v = (normal((1, heads, n, width), ww.bf16, s) for s, n in enumerate((queries, keys, keys)))
    return {"q": q, "k": k, "v": v, "o": np.full((1, heads, queries, width), np.nan, np.float32)}


SMALL = {"BQ": 32, "BK": 32, "D": 32}


@GFX950_FIRST
def test_case_35_slots_past_the_length_may_hold_anything(target):
    """Also cases 65 and 91: lengths off the tile."""
    arguments = attention_arguments()
    clean = assert_within(attention, target, arguments, **SMALL)["o"]
    for pad in (np.nan, np.inf):
        stale = dict(arguments)
        for name in ("k", "v"):
            storage = np.full((1, 2, 32, 32), pad, np.float32).astype(ww.bf16.numpy)
            storage[:, :, :17] = arguments[name]
            stale[name] = storage[:, :, :17]
        assert same_bits(ran(attention, target, stale, **SMALL)["o"], clean).all()


@GFX942_FIRST
def test_case_38_and_43_ten_runs_and_other_interleavings_give_the_same_bits(target):
    arguments = attention_arguments(40, 70)
    compiled = attention.compile(**arguments, **SMALL, target=target)
    ir = attention.compile(**arguments, **SMALL, target="reference").ir

    def simulated(given, seed=0):
        bound = compiled.binder.bind((), given)
        compiled.program.simulate(compiled.binder.launchable(bound, compiled.outputs), seed=seed)

    present = {n: arguments[n] for n in ir.param_names}
    findings = check(ir, present, simulated, laws=("repeat", "waves"), target=target, interleaved=simulated)
    assert {f.law for f in findings} == {"repeat", "waves"}
    assert not [str(f) for f in findings if not f.holds]


@GFX950_FIRST
def test_case_39_and_40_masks_follow_from_the_seed_alone(target):
    """Rows of tiles on a target, columns of tiles on the reference: one mask; another seed, another mask."""
    rows, columns = ww.kernel(case_kernels.keep_rows), ww.kernel(case_kernels.keep_columns)
    masks = []
    for seed in (1, 2, 1):
        given = {"out": np.zeros((33, 50), np.int32), "seed": seed, "p": 0.48}
        masks.append(ran(rows, target, given)["out"])
        np.testing.assert_array_equal(masks[-1], by_reference(columns, given)["out"])
    np.testing.assert_array_equal(masks[0], masks[2])
    assert (masks[0] != masks[1]).mean() > 0.3


# -- atomics ------------------------------------------------------------------------------------------


@GFX950_FIRST
def test_case_44_two_workgroups_add_to_one_cell(target):
    given = {"out": np.zeros(1, np.float32), "blocks": 2, "times": 1024}
    assert ran(ww.kernel(case_kernels.count_up), target, given)["out"][0] == 2048


def test_case_46_every_lanes_addition_arrives():
    given = {"x": np.ones((64, 1), np.float32), "out": np.zeros(1, np.float32)}
    assert ran(ww.kernel(case_kernels.add_rows), GFX942, given)["out"][0] == 64


@pytest.mark.parametrize("dtype", [ww.bf16, pytest.param(ww.f16, marks=MORE)], ids=str)
def test_case_47_16_bit_additions_at_an_odd_element(dtype):
    placed = place(np.tile([0, 1], 256).astype(dtype.numpy), "offset", 7.0)
    ww.kernel(case_kernels.add_one).compile(placed.view, target=GFX950).run(placed.view)
    np.testing.assert_array_equal(placed.view.astype(np.float32), np.tile([1, 2], 256))
    assert placed.pads_are_intact


# -- shapes and strides -------------------------------------------------------------------------------


@GFX942_FIRST
def test_case_56_odd_sizes_between_guards(target):
    """M, N and K off the tile; what lies around the operands is NaN and stays so."""
    a, b = normal((50, 51), ww.bf16, 1), normal((49, 51), ww.bf16, 2)
    arguments = {"a": a, "b": b, "c": np.zeros((50, 49), np.float32)}
    sizes = {"BM": 32, "BN": 32, "BK": 32, "transpose_b": True}
    assert_within(gemm, target, arguments, **sizes)
    compiled = gemm.compile(**arguments, **sizes, target=target)
    ir = gemm.compile(**arguments, **sizes, target="reference").ir
    present = {n: arguments[n] for n in ir.param_names}
    findings = check(ir, present, lambda given: compiled.run(**given), laws=("padding",), target=target)
    assert len(findings) == 3
    assert not [str(f) for f in findings if not f.holds]


@pytest.mark.parametrize("length", [913, 1, *(pytest.param(n, marks=MORE) for n in (513, 300, 128))])
def test_case_65_any_length_of_row(length):
    x = normal((3, length), seed=length)
    y = assert_within(softmax, GFX942, {"x": x, "y": np.full_like(x, np.nan)})["y"]
    assert not np.isnan(y).any()


@GFX950_FIRST
def test_case_67_a_masked_load_reads_nothing_outside(target):
    """The simulator stops at any access outside the five elements."""
    storage = np.array([1, np.nan, 2, np.nan, 3], np.float32)
    kernel, out = ww.kernel(case_kernels.copy_four), np.zeros(4, np.float32)
    kernel.compile(storage[::2], out, target=target).run(storage[::2], out)
    assert out.tolist() == [1, 2, 3, 0]


@pytest.mark.parametrize("n", [8, *(pytest.param(n, marks=MORE) for n in (1, 24))])
def test_case_68_a_width_that_is_no_multiple_of_16(n):
    a, b = normal((16, 32), ww.bf16, 1), normal((n, 32), ww.bf16, 2)
    assert_within(
        gemm, GFX950, {"a": a, "b": b, "c": np.zeros((16, n), np.float32)}, BM=32, BN=32, BK=32, transpose_b=True
    )


@GFX942_FIRST
def test_case_75_and_77_strides_of_each_tensor_are_its_own(target):
    arguments = attention_arguments(20, 24)
    plain = ran(attention, target, arguments, **SMALL)["o"]
    spaced = np.full((1, 2, 48, 32), np.nan, np.float32).astype(ww.bf16.numpy)[:, :, ::2]
    spaced[...] = arguments["k"]
    out = np.full((1, 20, 2, 32), np.nan, np.float32).swapaxes(1, 2)
    given = {**arguments, "k": spaced, "o": out}
    attention.compile(**given, **SMALL, target=target).run(**given)
    assert same_bits(out, plain).all()


@GFX950_FIRST
@pytest.mark.parametrize(("m", "n", "k"), [(0, 9, 7), (5, 0, 7), (5, 9, 0)])
def test_case_80_and_81_nothing_to_do(target, m, n, k):
    a, b, c = normal((m, k), ww.bf16), normal((n, k), ww.bf16), np.full((m, n), np.nan, np.float32)
    got = ran(gemm, target, {"a": a, "b": b, "c": c}, BM=32, BN=32, BK=32, transpose_b=True)["c"]
    np.testing.assert_array_equal(got, np.zeros((m, n)))


def test_case_83_a_grid_of_65537_in_its_second_dimension():
    out = ran(ww.kernel(case_kernels.tall_grid), GFX942, {"out": np.zeros(65537, np.int32)})["out"]
    np.testing.assert_array_equal(out, np.arange(65537))


# -- attention ----------------------------------------------------------------------------------------


@GFX942_FIRST
def test_case_85_and_86_queries_without_keys_give_zeros(target):
    arguments = attention_arguments(40, 20)
    lse = np.full((1, 2, 40), np.nan, np.float32)
    own = assert_within(attention, target, {**arguments, "lse": lse}, causal=True, **SMALL)
    assert (own["o"][:, :, :20] == 0).all()
    assert np.isneginf(own["lse"][:, :, :20]).all()
    assert np.isfinite(own["lse"][:, :, 20:]).all()


@pytest.mark.parametrize(("width", "target"), [(40, GFX942), (256, GFX950), pytest.param(80, GFX950, marks=MORE)])
def test_case_88_head_dimensions(width, target):
    assert_within(attention, target, attention_arguments(33, 40, width, 1), BQ=32, BK=32)


# -- refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["amd:gfx1201", "nvidia:sm_121", "tpu"])
def test_case_98_a_target_that_is_not_there_is_named_with_those_that_are(target):
    x = normal((4, 4))
    with pytest.raises(TileError, match="amd:gfx942") as error:
        softmax.compile(x, x.copy(), target=target)
    assert target in str(error.value)


@pytest.mark.sweep
def test_fused_kernels_are_within_the_contract():
    """Dropout, residual and normalisation in one: masks, sums and casts together."""
    samples = [dict(s) for s in dropout_residual_layernorm.sample_inputs(0)][:1]
    for sample in samples:
        names = [p.name for p in dropout_residual_layernorm.signature.params]
        arguments = {n: sample[n] for n in names if n in sample}
        constants = {n: v for n, v in sample.items() if n not in names}
        ir = dropout_residual_layernorm.compile(**arguments, **constants, target=GFX942).ir
        own = ran(dropout_residual_layernorm, GFX942, arguments, **constants)
        present = {n: arguments[n] for n in ir.param_names}
        estimates = allowed(ir, present, GFX942)
        assert all(judge(n, own[n], e).level is not Level.VIOLATION for n, e in estimates.items())
