from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import warpwave as ww
from warpwave.tiles.dtypes import bf16, bool_, f16, f32, fp8e4m3, fp8e4m3fnuz, fp8e5m2, fp8e5m2fnuz, i8, i32, i64
from warpwave.tiles.tests.format_model import LAYOUT, decode, magnitudes, model_cast, round_exact, round_f32
from warpwave.tiles.tests.reference_harness import evaluate, same_bits

FP8 = (fp8e4m3, fp8e5m2, fp8e4m3fnuz, fp8e5m2fnuz)
SMALL = (*FP8, f16, bf16)
ROUNDINGS = ("rne", "rtz", "rta", "rtp", "rtn")


def cast(x, dtype, rounding="rne", saturate=False):
    x = np.atleast_1d(x)
    return evaluate(lambda t: ww.cast(t, dtype, rounding=rounding, saturate=saturate), x)


def all_codes(dtype):
    raw = np.arange(1 << dtype.bits, dtype=np.uint16 if dtype.bits == 16 else np.uint8)
    return raw.view(dtype.numpy)


def fields(dtype):
    return np.array([decode(dtype.name, code) for code in range(1 << dtype.bits)])


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_every_code_widens_to_its_value(dtype):
    same_bits(cast(all_codes(dtype), f32), fields(dtype).astype(np.float32))


@pytest.mark.parametrize("target", [f16, bf16], ids=str)
@pytest.mark.parametrize("dtype", FP8, ids=str)
def test_every_fp8_code_widens_to_16_bits(dtype, target):
    same_bits(cast(all_codes(dtype), target), fields(dtype).astype(target.numpy))


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_every_code_survives_the_way_through_f32(dtype, rounding):
    codes = all_codes(dtype)
    same_bits(cast(cast(codes, f32), dtype, rounding), codes)


def around_midpoints(dtype):
    """All values, all midpoints, one f32 ulp to either side of each, and the region beyond the largest."""
    table = np.array(magnitudes(dtype.name))
    step = table[-1] - table[-2]
    points = np.concatenate([table, (table[1:] + table[:-1]) / 2, table[-1] + step * np.array([0.5, 1, 1.5, 100])])
    points = points.astype(np.float32)
    near = np.concatenate([points, np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(0))])
    return np.concatenate([near, -near, np.float32([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-45, -1e-45, 3.4e38])])


@pytest.mark.parametrize("saturate", [False, True], ids=["ieee", "saturate"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", FP8, ids=str)
def test_fp8_midpoints_and_neighbours(dtype, rounding, saturate):
    x = around_midpoints(dtype)
    expected = model_cast(x, dtype, rounding, saturate).astype(dtype.numpy)
    same_bits(cast(x, dtype, rounding, saturate), expected)


@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_16_bit_midpoints_and_neighbours(dtype, rounding):
    table = np.array(magnitudes(dtype.name))
    picked = np.random.default_rng(5).integers(0, len(table) - 1, 400)
    picked = np.concatenate([picked, np.arange(20), len(table) - 2 - np.arange(20)])
    points = ((table[picked] + table[picked + 1]) / 2).astype(np.float32)
    x = np.concatenate([points, np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(0))])
    x = np.concatenate([x, -x])
    same_bits(cast(x, dtype, rounding), model_cast(x, dtype, rounding).astype(dtype.numpy))


def random_f32(count, seed):
    raw = np.random.default_rng(seed).integers(0, 1 << 32, count, dtype=np.uint32)
    return raw.view(np.float32)


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_nearest_even_from_f32_equals_ml_dtypes(dtype):
    x = np.concatenate([random_f32(200_000, 1), np.random.default_rng(2).normal(0, 20, 50_000).astype(np.float32)])
    with np.errstate(all="ignore"):
        same_bits(cast(x, dtype), x.astype(dtype.numpy))


def test_nearest_even_to_f16_and_bf16_for_all_upper_halves():
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    with np.errstate(all="ignore"):
        for lower in (0, 1, 0x7FFF, 0x8000, 0x8001, 0x1000, 0xFFFF):
            x = (upper | np.uint32(lower)).view(np.float32)
            same_bits(cast(x, bf16), x.astype(bf16.numpy))
            same_bits(cast(x, f16), x.astype(np.float16))


@pytest.mark.sweep
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_random_bits_in_every_rounding(dtype, rounding):
    x = random_f32(20_000, 3)
    same_bits(cast(x, dtype, rounding), model_cast(x, dtype, rounding).astype(dtype.numpy))


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_random_values_in_every_rounding(dtype, rounding):
    x = np.random.default_rng(4).normal(0, 1, 300) * np.exp2(np.random.default_rng(5).uniform(-20, 12, 300))
    x = x.astype(np.float32)
    same_bits(cast(x, dtype, rounding), model_cast(x, dtype, rounding).astype(dtype.numpy))


@pytest.mark.parametrize("dtype", FP8, ids=str)
def test_stores_to_fp8_saturate_unless_told_otherwise(dtype):
    x = np.float32([1e9, -1e9, np.inf, -np.inf, np.nan])
    largest = float(ml_dtypes.finfo(dtype.numpy).max)
    got = evaluate(lambda t: ww.cast(t, dtype), x).astype(np.float64)
    np.testing.assert_array_equal(got, [largest, -largest, largest, -largest, np.nan])


# -- integers -----------------------------------------------------------------------------------------

PYTHON_ROUNDING = {
    "rne": round,
    "rtz": lambda q: int(q) if q >= 0 else -int(-q),
    "rta": lambda q: (1 if q >= 0 else -1) * ((2 * abs(q) + 1) // 2),
    "rtp": lambda q: -((-q) // 1),
    "rtn": lambda q: q // 1,
}


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("target", [i8, i32, i64], ids=str)
def test_float_to_integer_saturates(target, rounding):
    edges = [
        float(target.min),
        float(target.max),
        0.0,
        -0.0,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        -2.5,
        127.5,
        -128.5,
        1e30,
        -1e30,
    ]
    x = np.array([*edges, *np.random.default_rng(0).normal(0, 100, 300)], np.float32)
    expected = [max(target.min, min(target.max, int(PYTHON_ROUNDING[rounding](Fraction(float(v)))))) for v in x]
    got = evaluate(lambda t: ww.cast(t, target, rounding=rounding), x)
    np.testing.assert_array_equal(got, np.array(expected, target.numpy))


@pytest.mark.parametrize("source", [f32, f16, bf16, fp8e5m2], ids=str)
def test_nan_and_infinity_to_integer(source):
    x = np.array([np.nan, np.inf, -np.inf], source.numpy)
    np.testing.assert_array_equal(evaluate(lambda t: ww.cast(t, i32), x), [0, i32.max, i32.min])


LARGE = [
    0,
    1,
    -1,
    2**24 + 1,
    2**53 + 1,
    2**62 + 2**38 + 1,
    2**62 + 2**38,
    2**63 - 1,
    -(2**63),
    2**40 + 2**16 + 1,
    65519,
    65520,
]


@pytest.mark.parametrize("target", [f16, bf16, fp8e4m3], ids=str)
def test_integer_to_float_rounds_once(target):
    x = np.array([*LARGE, *np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 200), *range(-300, 300)], np.int64)
    expected = np.array([round_exact(Fraction(int(v)), target, "rne", False) if v else 0.0 for v in x])
    same_bits(cast(x, target), expected.astype(target.numpy))


def test_integer_to_f32_rounds_once():
    rng = np.random.default_rng(0)
    ties = (rng.integers(2**23, 2**24, 200) << 39) + (1 << 38) + rng.integers(-1, 2, 200)
    x = np.array([*LARGE, *ties, *rng.integers(-(2**63), 2**63 - 1, 200)], np.int64)
    same_bits(cast(x, f32), np.array([round_f32(Fraction(int(v))) for v in x]))


@pytest.mark.parametrize(("source", "target"), [(i32, i8), (i64, i32), (i64, i8), (i8, i32), (i32, i64)], ids=str)
def test_integer_to_integer_wraps_or_saturates(source, target):
    x = np.array([0, 1, -1, 127, 128, -128, -129, source.min, source.max, 77], np.int64).clip(source.min, source.max)
    x = x.astype(source.numpy)
    wide = [int(v) for v in x]
    span = 1 << target.bits
    wrapped = [(v + span // 2) % span - span // 2 for v in wide]
    np.testing.assert_array_equal(cast(x, target), np.array(wrapped, target.numpy))
    limited = [max(target.min, min(target.max, v)) for v in wide]
    np.testing.assert_array_equal(cast(x, target, saturate=True), np.array(limited, target.numpy))


def test_bool_casts():
    flags = np.array([True, False])
    for target in (f32, bf16, fp8e4m3, i8, i32, i64):
        np.testing.assert_array_equal(cast(flags, target).astype(np.float64), [1, 0])
    x = np.float32([0.0, -0.0, 1e-45, np.nan, -3, np.inf])
    np.testing.assert_array_equal(cast(x, bool_), [False, False, True, True, True, True])


@pytest.mark.parametrize(("a", "b"), [(f32, i32), (f16, bf16), (fp8e4m3, i8), (fp8e5m2fnuz, fp8e4m3)], ids=str)
def test_bitcast_keeps_every_bit(a, b):
    raw = np.random.default_rng(0).integers(0, 256, 4096, dtype=np.uint8).view(a.numpy)
    there = evaluate(lambda t: ww.bitcast(t, b), raw)
    assert there.tobytes() == raw.tobytes()
    assert evaluate(lambda t: ww.bitcast(t, a), there).tobytes() == raw.tobytes()


def test_the_model_knows_every_format():
    assert {d.name for d in (*SMALL, f32)} == set(LAYOUT)
    for dtype in SMALL:
        same_bits(fields(dtype).astype(np.float32).astype(dtype.numpy), all_codes(dtype))
