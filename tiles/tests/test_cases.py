"""Defects seen in the field (shared list of cases, by number), each checked on the reference."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import warpwave as ww
from warpwave.tiles.dtypes import bf16, f16, f32, fp8e4m3, fp8e4m3fnuz, fp8e5m2, fp8e5m2fnuz, i32
from warpwave.tiles.errors import TileValueError
from warpwave.tiles.reference import oracle
from warpwave.tiles.reference.accuracy import ACCURACY
from warpwave.tiles.reference.closed_forms import attention_bound
from warpwave.tiles.tests import case_kernels as kernels
from warpwave.tiles.tests import oracle_kernels
from warpwave.tiles.tests.format_model import decode, round_f32
from warpwave.tiles.tests.reference_harness import (
    assert_softmax,
    bits,
    captured,
    evaluate,
    judge,
    run,
    run_within,
    same_bits,
)

FP8 = (fp8e4m3, fp8e5m2, fp8e4m3fnuz, fp8e5m2fnuz)


def normal(shape, dtype=f32, seed=0, scale=1.0):
    return np.random.default_rng(seed).normal(0, scale, shape).astype(np.float32).astype(dtype.numpy)


def codes(dtype):
    return np.arange(256, dtype=np.uint8).view(dtype.numpy)


def cast(x, dtype, **options):
    return evaluate(lambda t: ww.cast(t, dtype, **options), np.atleast_1d(x))


def guarded(shape, dtype, guard=np.nan, pad=5):
    """A view of `shape` inside a larger array full of `guard`."""
    storage = np.full([n + 2 * pad for n in shape], guard, dtype)
    return storage, storage[tuple(slice(pad, pad + n) for n in shape)]


# -- A. small formats ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [fp8e4m3fnuz, fp8e5m2fnuz], ids=str)
def test_case_01_fnuz_0x80_is_nan(dtype):
    assert bits(cast(codes(dtype), f16))[0x80] == bits(np.float16([np.nan]))[0]
    assert np.isnan(cast(codes(dtype), f32)[0x80])
    wide = cast(codes(dtype), f32)
    assert np.isnan(wide).sum() == 1
    assert not (np.signbit(wide) & (wide == 0)).any()


def test_case_02_e4m3_is_not_read_as_fnuz():
    x = np.array([1.0, 2.0, 448.0], fp8e4m3.numpy)
    np.testing.assert_array_equal(cast(x, f32), [1, 2, 448])


def test_case_03_e4m3_matrix_product_is_exact():
    a, b = normal((64, 64), fp8e4m3, 1), normal((64, 64), fp8e4m3, 2)
    got = evaluate(lambda x, y: ww.mma_ABt(ww.zeros(ww.rt[f32, 64, 64]), x, y), a, b)
    np.testing.assert_array_equal(got, (a.astype(np.float64) @ b.astype(np.float64).T).astype(np.float32))


@pytest.mark.parametrize("dtype", FP8, ids=str)
def test_case_04_every_code_is_its_table_value(dtype):
    same_bits(cast(codes(dtype), f32), np.array([decode(dtype.name, c) for c in range(256)], np.float32))


OVERFLOWS = np.float32([1000, 448, 464, 465, -1000, np.inf, np.nan])


def test_case_05_one_overflow_policy_by_name():
    saturated = cast(OVERFLOWS, fp8e4m3, saturate=True).astype(np.float32)
    np.testing.assert_array_equal(saturated, [448, 448, 448, 448, -448, 448, np.nan])
    ieee = cast(OVERFLOWS, fp8e4m3, saturate=False).astype(np.float32)
    np.testing.assert_array_equal(ieee, [np.nan, 448, 448, np.nan, np.nan, np.nan, np.nan])
    large = np.float32([1e6, np.inf])
    np.testing.assert_array_equal(cast(large, fp8e5m2, saturate=True).astype(np.float32), [57344, 57344])
    np.testing.assert_array_equal(cast(large, fp8e5m2, saturate=False).astype(np.float32), [np.inf, np.inf])


@pytest.mark.parametrize(
    ("dtype", "largest"), [(fp8e4m3, 448), (fp8e4m3fnuz, 240), (fp8e5m2, 57344), (fp8e5m2fnuz, 57344)], ids=str
)
def test_case_06_casts_do_not_wrap_round(dtype, largest):
    x = np.float32([9, 1.125, 1e6, -1e6, np.inf, np.nan])
    got = cast(x, dtype).astype(np.float32)
    nine, small = (9, 1.125) if dtype.mantissa == 3 else (8, 1)
    np.testing.assert_array_equal(got, [nine, small, largest, -largest, largest, np.nan])


@pytest.mark.parametrize("dtype", FP8, ids=str)
def test_case_12_moving_fp8_moves_bits(dtype):
    x = codes(dtype).reshape(16, 16)

    def around(t):
        even, odd = ww.deinterleave(ww.to_register(ww.to_shared(t)).T)
        return ww.interleave(even, odd).T

    assert evaluate(around, x).tobytes() == x.tobytes()


def test_case_14_negative_infinity_in_a_format_without_one():
    with pytest.raises(TileValueError, match="fp8e4m3 has no infinity") as info:
        run(kernels.padded_fp8, {"x": np.zeros(3, fp8e4m3.numpy), "out": np.zeros(8, fp8e4m3.numpy)})
    assert "largest finite value 448" in str(info.value)
    assert info.value.loc is not None


# -- B. rounding, denormals, functions ----------------------------------------------------------------


def test_case_15_chained_norms_round_to_nearest():
    """72 additions to a bf16 residual: bit for bit as rounded to nearest even, without drift."""
    x = normal((4, 256), bf16)
    residual = normal((4, 256), bf16, 1)
    model, exact = residual.astype(np.float64), residual.astype(np.float64)
    for _ in range(72):
        run(kernels.residual_step, {"x": x, "residual": residual})
        step = normalised(model.astype(np.float32))
        model = (model + (x.astype(np.float32) * step)).astype(np.float32).astype(bf16.numpy).astype(np.float64)
        exact = exact + x.astype(np.float64) * step
    np.testing.assert_array_equal(residual.astype(np.float64), model)
    drift = (np.abs(model) - np.abs(exact)) / np.abs(exact).mean()
    assert abs(drift.mean()) < 0.004


def normalised(x):
    """A scale per row that the kernel computes in f32 without any rounding question: a power of two."""
    return np.exp2(np.floor(-np.log2(np.abs(x).max(axis=1, keepdims=True)))).astype(x.dtype)


def test_case_16_ties_go_to_even_unless_named():
    upper = np.arange(0x3F00, 0x3F80, dtype=np.uint32)
    ties = ((upper << 16) | 0x8000).view(np.float32)
    default = evaluate(lambda t: ww.cast(t, bf16), ties)
    np.testing.assert_array_equal(bits(default), upper + (upper & 1))
    np.testing.assert_array_equal(bits(cast(ties, bf16, rounding="rtz")), upper)
    np.testing.assert_array_equal(bits(cast(ties, bf16, rounding="rta")), upper + 1)


def test_case_17_bf16_in_the_interpreter():
    x = np.float32([1.01171875, 3.4e38, 1e-40])
    np.testing.assert_array_equal(cast(x, bf16), x.astype(bf16.numpy))
    np.testing.assert_array_equal(cast(x, bf16).astype(np.float32)[:2], [1.015625, np.inf])
    a, b = normal((16, 16), bf16, 1), normal((16, 16), bf16, 2)
    got = evaluate(lambda p, q: ww.mma_AB(ww.zeros(ww.rt[f32, 16, 16]), p, q), a, b)
    np.testing.assert_array_equal(got, (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32))


def test_case_18_bf16_product_is_the_rounded_product():
    raw = np.random.default_rng(0).integers(0, 1 << 16, (2, 1024, 512), dtype=np.uint16)
    a, b = raw.view(bf16.numpy)
    with np.errstate(all="ignore"):
        exact = a.astype(np.float32) * b.astype(np.float32)  # 16 bits: exact in f32 wherever bf16 is normal
        same_bits(evaluate(ww.mul, a, b), exact.astype(bf16.numpy))


def test_case_21_division_and_square_root_are_correctly_rounded():
    rng = np.random.default_rng(0)
    raw = rng.integers(0, 1 << 31, (2, 1 << 16), dtype=np.uint32)
    x, y = raw.view(np.float32)
    y[::7] = rng.integers(1, 1 << 23, y[::7].shape, dtype=np.uint32).view(np.float32)  # subnormal
    with np.errstate(all="ignore"):
        same_bits(evaluate(ww.div, x, y), x / y)  # the processor's own instruction is correctly rounded
        same_bits(evaluate(ww.sqrt, x), np.sqrt(x))
    usable = np.flatnonzero(np.isfinite(x) & np.isfinite(y))[:300]
    exact = [round_f32(Fraction(float(p)) / Fraction(float(q))) for p, q in zip(x[usable], y[usable], strict=True)]
    same_bits(evaluate(ww.div, x[usable], y[usable]), np.array(exact))


def test_case_22_round_half_to_even():
    got = evaluate(ww.round, np.float32([0.5, 1.5, 2.5, -0.5, -2.5]))
    same_bits(got, np.float32([0, 2, 2, -0.0, -2]))


@pytest.mark.parametrize("name", ["exp", "log", "rsqrt"])
def test_case_23_one_stated_bound_per_function(name):
    x = np.linspace(-87, 88, 1 << 14).astype(np.float32)
    x = np.concatenate([x if name == "exp" else np.abs(x) + np.float32(1e-3), np.float32([1e-45, 1e-40, 1e-38])])
    estimate, actual = judge(getattr(ww, name), x)
    assert estimate.agrees(actual).all()
    ulp = np.spacing(np.abs(actual)).astype(np.float64)
    assert (estimate.bound <= ACCURACY[name].ulps * ulp * 2.01).all()
    far = actual + (3 * ulp * np.where(np.arange(x.size) % 2, 1, -1)).astype(np.float32)
    assert not estimate.agrees(far)[estimate.bound > 0].any()


def test_case_25_no_hidden_fma():
    x = np.float32([-0.25])
    got = evaluate(lambda t: ww.sqrt((t / 0.75) * 0.75 + 0.25), x)
    assert got[0] == 0
    estimate, _ = judge(lambda t: ww.sqrt((t / 0.75) * 0.75 + 0.25), x)
    assert (estimate.value[0], estimate.bound[0]) == (0, 0)
    third = np.float32(-0.25) / np.float32(0.75)
    fused = evaluate(lambda t: ww.fma(t, ww.full(ww.rv[f32, 1], 0.75), ww.full(ww.rv[f32, 1], 0.25)), np.array([third]))
    assert fused[0] < 0
    a, b = normal((64,), f32, 1), normal((64,), f32, 2)
    with np.errstate(all="ignore"):
        same_bits(evaluate(lambda p, q: p * q + p, a, b), a * b + a)


def test_case_26_denormals_are_not_flushed():
    """The power-of-two test: result(2**k * g) / 2**k is the same for all k."""
    g, w = normal((32, 32), f16, 1, 2e-5), normal((32, 32), f16, 2)
    g = (np.round(g.astype(np.float64) * 2**24) / 2**24).astype(np.float16)
    assert (np.abs(g.astype(np.float64)) < 2.0**-14).mean() > 0.7
    results = []
    for k in range(9):
        scaled = (g.astype(np.float64) * 2.0**k).astype(np.float16)
        got = evaluate(lambda p, q: ww.mma_AB(ww.zeros(ww.rt[f32, 32, 32]), p, q), scaled, w)
        results.append(got.astype(np.float64) / 2.0**k)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)
    tiny = np.float32([1e-40, -1e-45])
    same_bits(evaluate(lambda t: t * 1.0 + 0.0, tiny), tiny)


def test_case_27_no_bias_in_a_long_positive_product():
    a, b = np.abs(normal((16, 4096), f32, 1)), np.abs(normal((16, 4096), f32, 2))
    c = np.zeros((16, 16), np.float32)
    run(oracle_kernels.gemm, {"a": a, "b": b, "c": c}, BK=512)
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    assert abs(((c - exact) / exact).mean()) < 2.0**-25


def test_case_28_f32_product_is_not_tf32():
    a, b = normal((64, 512), f32, 1), normal((64, 512), f32, 2)
    c = np.zeros((64, 64), np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    run_within(oracle_kernels.gemm, {"a": a, "b": b, "c": c}, {"c": exact}, BM=64, BN=64, BK=128)


def test_case_29_cancellation_is_covered_by_the_bound():
    a = np.tile(np.float32([2**12, 1, -(2**12), 1]), (4, 16)).astype(bf16.numpy)
    b = normal((4, 64), bf16, 3)
    estimate, actual = judge(lambda x, y: ww.mma_ABt(ww.zeros(ww.rt[f32, 4, 4]), x, y), a, b)
    assert estimate.agrees(actual).all()
    sequential = np.zeros((4, 4), np.float32)
    for k in range(64):
        sequential += a[:, k, None].astype(np.float32) * b[None, :, k].astype(np.float32)
    assert estimate.agrees(sequential).all()


@pytest.mark.parametrize("shape", [(32, 64, 16), (128, 256, 64)], ids=str)
def test_case_30_bf16_product_with_gelu(shape):
    m, n, k = shape
    a, b = normal((m, k), bf16, 1), normal((n, k), bf16, 2)
    c = np.zeros((m, n), bf16.numpy)
    arguments = {"a": a, "b": b, "c": c}
    x = a.astype(np.float64) @ b.astype(np.float64).T
    exact = np.array([0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x.ravel()]).reshape(x.shape)
    run_within(kernels.gemm_gelu, arguments, {"c": exact})


def test_case_32_the_tie_that_broke_a_golden_reference():
    assert float(cast(np.float32([1.01953125]), bf16)[0]) == 1.015625


# -- C. NaN -------------------------------------------------------------------------------------------


def test_case_33_max_with_nan():
    nan = np.nan
    x = np.float32([[nan, 6, 8, 1], [np.inf, nan, -1, 2], [1, 2, 3, 4]])
    np.testing.assert_array_equal(evaluate(lambda t: ww.max(t, axis=1), x), [nan, nan, 4])
    np.testing.assert_array_equal(evaluate(lambda t: ww.max(t, axis=1, nan="ignore"), x), [8, np.inf, 4])
    np.testing.assert_array_equal(evaluate(lambda a, b: ww.maximum(a, b), x[0], x[2]), [nan, 6, 8, 4])
    np.testing.assert_array_equal(evaluate(lambda a, b: ww.maximum(a, b, nan="ignore"), x[0], x[2]), [1, 6, 8, 4])


@pytest.mark.parametrize("pad", [0.0, np.nan, np.inf])
def test_case_35_padding_of_keys_and_values_does_not_leak(pad):
    outputs = [attention_with_padding(17, p) for p in (0.0, pad)]
    same_bits(*outputs)


def attention_with_padding(length, pad, queries=9):
    q = normal((queries, 16), bf16, 1)
    kv = np.full((2, 32, 16), pad, np.float32).astype(bf16.numpy)
    kv[0, :length], kv[1, :length] = normal((length, 16), bf16, 2), normal((length, 16), bf16, 3)
    o = np.full((queries, 16), np.nan, np.float32)
    run(oracle_kernels.attention, {"q": q, "k": kv[0, :length], "v": kv[1, :length], "o": o})
    return o


# -- D. determinism and random numbers ----------------------------------------------------------------


def test_case_38_and_43_ten_runs_give_the_same_bits():
    outputs = [attention_with_padding(17, np.nan) for _ in range(10)]
    for other in outputs[1:]:
        same_bits(outputs[0], other)


def test_case_39_dropout_masks_of_forward_and_backward_agree():
    """The forward kernel cuts the array into rows, the backward one into columns of another size."""
    shape = (33, 50)
    forward, backward = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    run(kernels.keep_rows, {"out": forward, "seed": 5, "p": 0.48})
    run(kernels.keep_columns, {"out": backward, "seed": 5, "p": 0.48})
    np.testing.assert_array_equal(forward, backward)
    assert abs(forward.mean() - 0.52) < 0.05


def test_case_40_seeds_give_different_masks_that_repeat():
    masks = []
    for seed in (1, 2, 1):
        out = np.zeros((16, 64), np.int32)
        run(kernels.keep_rows, {"out": out, "seed": seed, "p": 0.5})
        masks.append(out)
    np.testing.assert_array_equal(masks[0], masks[2])
    assert (masks[0] != masks[1]).mean() > 0.3


# -- E. atomics ---------------------------------------------------------------------------------------


def test_case_44_two_blocks_add_1024_times():
    out = np.zeros(1, np.float32)
    run(kernels.count_up, {"out": out, "blocks": 2, "times": 1024})
    assert out[0] == 2048


def test_case_46_atomic_adds_of_all_elements_arrive():
    x, out = np.ones((64, 1), np.float32), np.zeros(1, np.float32)
    run(kernels.add_rows, {"x": x, "out": out})
    assert out[0] == 64


@pytest.mark.parametrize("dtype", [bf16, f16], ids=str)
def test_case_47_16_bit_atomics_at_odd_elements(dtype):
    storage = np.full(1025, 7, np.float32).astype(dtype.numpy)
    x = storage[1:513]
    x[...] = np.tile([0, 1], 256)
    run(kernels.add_one, {"out": x})
    np.testing.assert_array_equal(x.astype(np.float32), np.tile([1, 2], 256))
    assert (storage[513:].astype(np.float32) == 7).all()
    assert float(storage[0]) == 7


# -- F. masks and odd shapes --------------------------------------------------------------------------


def test_case_56_odd_gemm_between_nan_guards():
    m, n, k = 100, 99, 131
    _, a = guarded((m, k), bf16.numpy)
    _, b = guarded((n, k), bf16.numpy)
    storage, c = guarded((m, n), np.float32, guard=-1)
    a[...], b[...] = normal((m, k), bf16, 1), normal((n, k), bf16, 2)
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    run_within(oracle_kernels.gemm, {"a": a, "b": b, "c": c}, {"c": exact}, BM=64, BN=32, BK=64)
    c[...] = -1
    assert (storage == -1).all()


@pytest.mark.sweep
def test_case_56_at_its_full_size():
    m, n, k = 1000, 999, 1001
    a, b, c = normal((m, k), bf16, 1), normal((n, k), bf16, 2), np.zeros((m, n), np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    run_within(oracle_kernels.gemm, {"a": a, "b": b, "c": c}, {"c": exact}, BM=128, BN=128, BK=128)


def test_case_62_grouped_product_with_empty_and_odd_groups():
    lengths, n, k = [3, 0, 129, 1], 264, 127
    starts = np.cumsum([0, *lengths]).astype(np.int32)
    a, b = normal((sum(lengths), k), bf16, 1), normal((4, n, k), bf16, 2)
    c = np.full((sum(lengths), n), np.nan, np.float32)
    exact = np.zeros(c.shape)
    for group, (low, high) in enumerate(itertools.pairwise(starts)):
        exact[low:high] = a[low:high].astype(np.float64) @ b[group].astype(np.float64).T
    run_within(kernels.grouped_gemm, {"a": a, "b": b, "starts": starts, "c": c}, {"c": exact})


@pytest.mark.parametrize("length", [913, 513, 300, 128, 1])
def test_case_65_rows_are_exact_for_any_length(length):
    x = normal((length, 40))
    y = np.full_like(x, np.nan)
    run(oracle_kernels.softmax, {"x": x, "y": y}, R=128)
    assert_softmax(y, x)


def test_case_67_a_masked_load_reads_nothing_outside():
    storage, out = np.float32([1, np.nan, 2, np.nan, 3]), np.zeros(4, np.float32)
    run(kernels.copy_four, {"x": storage[::2], "out": out})
    np.testing.assert_array_equal(out, [1, 2, 3, 0])


@pytest.mark.parametrize("n", [1, 8, 24])
def test_case_68_n_need_not_be_a_multiple_of_16(n):
    a, b, c = normal((16, 32), bf16, 1), normal((n, 32), bf16, 2), np.zeros((16, n), np.float32)
    run_within(oracle_kernels.gemm, {"a": a, "b": b, "c": c}, {"c": a.astype(np.float64) @ b.astype(np.float64).T})


# -- G. far offsets -----------------------------------------------------------------------------------


def test_case_69_the_last_batch_is_2508718080_elements_away(tmp_path):
    x = sparse(tmp_path, 320 * 2560 * 3072, np.int8).reshape(320, 2560, 3072)
    x[319, 0, :4] = [1, 2, 3, 4]
    out = np.zeros(4, np.int8)
    run(kernels.start_of_batch, {"x": x, "out": out, "b": 319})
    np.testing.assert_array_equal(out, [1, 2, 3, 4])


def sparse(tmp_path, count, dtype):
    """An array in a file without contents: it takes address space, not memory."""
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(count * np.dtype(dtype).itemsize)
    return np.asarray(np.memmap(path, dtype, "r+"))


def test_case_72_bf16_rows_of_2_to_the_26(tmp_path):
    x = sparse(tmp_path, 1 << 29, np.uint16).view(bf16.numpy).reshape(8, 1 << 26)
    x[:, 0] = np.arange(1, 9)
    out = np.zeros(8, bf16.numpy)
    run(kernels.first_column, {"x": x, "out": out})
    np.testing.assert_array_equal(out.astype(np.float32), np.arange(1, 9))


def test_case_73_layout_arithmetic_beyond_32_bits(tmp_path):
    x = sparse(tmp_path, (2**29 + 1) * 4, np.int8).reshape(2**29 + 1, 4)
    x[2**29] = [1, 2, 3, 4]
    out = np.zeros(4, np.int8)
    run(kernels.row_at, {"x": x, "out": out, "r": 2**29})
    np.testing.assert_array_equal(out, [1, 2, 3, 4])
    single = as_strided(out, (1, 4), (2**33, 1))
    copied = np.zeros(4, np.int8)
    run(kernels.row_at, {"x": single, "out": copied, "r": 0})
    np.testing.assert_array_equal(copied, out)


def test_case_74_the_last_of_3270000000_elements(tmp_path):
    count = 3_270_000_000
    x = sparse(tmp_path, count, np.float16)
    x[-1] = 2.5
    run(kernels.double_at, {"x": x, "block": (count - 1) // 1024})
    assert x[-1] == 5.0


# -- H. strides ---------------------------------------------------------------------------------------


def test_case_75_keys_and_values_of_different_strides():
    q, k, v = normal((21, 16), f16, 1), normal((19, 32), f16, 2), normal((19, 16), f16, 3)
    outputs = []
    for keys in (k[:, ::2], k[:, ::2].copy()):
        o = np.zeros((21, 16), np.float32)
        run(oracle_kernels.attention, {"q": q, "k": keys, "v": v, "o": o})
        outputs.append(o)
    same_bits(*outputs)


def test_case_77_output_strides_differ_from_input_strides():
    a, b = normal((20, 30), bf16, 1), normal((25, 30), bf16, 2)
    straight, across = np.zeros((20, 25), np.float32), np.zeros((25, 20), np.float32).T
    for c in (straight, across):
        run(oracle_kernels.gemm, {"a": a, "b": b, "c": c})
    same_bits(straight, across)


# -- I. zero size and grid limits ---------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k"), [(0, 9, 7), (5, 0, 7), (0, 0, 7), (5, 9, 0)])
def test_case_80_zero_sizes(m, n, k):
    a, b, c = normal((m, k), bf16), normal((n, k), bf16), np.full((m, n), np.nan, np.float32)
    run(oracle_kernels.gemm, {"a": a, "b": b, "c": c})
    np.testing.assert_array_equal(c, np.zeros((m, n)))


def test_case_81_an_empty_grid_does_nothing():
    out = np.full(1, 3, np.float32)
    run(kernels.count_up, {"out": out, "blocks": 0, "times": 5})
    assert out[0] == 3
    arguments = {"out": out, "blocks": 0, "times": 5}
    estimate = oracle(captured(kernels.count_up, arguments), arguments)["out"]
    assert (estimate.value[0], estimate.bound[0]) == (3, 0)


def test_case_83_a_grid_of_65537_in_its_second_dimension():
    out = np.zeros(65537, np.int32)
    run(kernels.tall_grid, {"out": out})
    np.testing.assert_array_equal(out, np.arange(65537))


# -- J. attention -------------------------------------------------------------------------------------


def test_case_85_and_86_rows_without_keys_give_zero():
    q, k, v = normal((40, 16), bf16, 1), normal((24, 16), bf16, 2), normal((24, 16), bf16, 3)
    o = np.full((40, 16), np.nan, np.float32)
    run(oracle_kernels.attention, {"q": q, "k": k, "v": v, "o": o})
    np.testing.assert_array_equal(o[:16], 0)
    scores = (q.astype(np.float64) @ k.astype(np.float64).T) / 4
    keep = np.arange(24)[None, :] <= np.arange(40)[:, None] - 16
    p, v = np.where(keep, np.exp(scores), 0)[16:], v.astype(np.float64)
    total = p.sum(axis=1, keepdims=True)
    size = (np.abs(q.astype(np.float64)) @ np.abs(k.astype(np.float64)).T / 4)[16:].max(axis=1, keepdims=True)
    exact, average = p @ v / total, p @ np.abs(v) / total
    assert (
        np.abs(o[16:] - exact) <= attention_bound(exact, average, size, width=16, keys=24, tile=8, dtype=bf16)
    ).all()


# -- Z. oracle rules ----------------------------------------------------------------------------------


def test_rule_z3_padding_invariance_of_a_whole_product():
    outputs = []
    for pad in (0, np.nan, np.inf):
        _, a = guarded((19, 37), bf16.numpy, pad)
        _, b = guarded((23, 37), bf16.numpy, pad)
        a[...], b[...] = normal((19, 37), bf16, 1), normal((23, 37), bf16, 2)
        c = np.zeros((19, 23), np.float32)
        run(oracle_kernels.gemm, {"a": a, "b": b, "c": c})
        outputs.append(c)
    same_bits(outputs[0], outputs[1])
    same_bits(outputs[0], outputs[2])


def test_rule_z5_signed_mean_error_of_a_cast():
    x = np.abs(normal((1 << 14,)))
    error = {r: ((cast(x, bf16, rounding=r).astype(np.float64) - x) / x).mean() * 2**8 for r in ("rne", "rtz")}
    assert abs(error["rne"]) < 0.02
    assert error["rtz"] < -0.5
    assert i32.bits == 32
