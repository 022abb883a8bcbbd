"""Every elementwise op on every dtype: special values, edges of the formats and dense grids."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import warpwave as ww
from warpwave.backends.amd.tests.harness import agree_ops
from warpwave.tiles.dtypes import DType, bf16, f16, f32, fp8e4m3, fp8e4m3fnuz, fp8e5m2, fp8e5m2fnuz, i8, i32, i64

FLOATS = (f32, f16, bf16)
FP8 = (fp8e4m3, fp8e5m2, fp8e4m3fnuz, fp8e5m2fnuz)
FUNCTIONS = [
    "exp",
    "exp2",
    "log",
    "log2",
    "sqrt",
    "rsqrt",
    "rcp",
    "tanh",
    "sigmoid",
    "erf",
    "gelu",
    "silu",
    "floor",
    "ceil",
    "round",
    "trunc",
]
UNARY = [
    *((name, getattr(ww, name)) for name in FUNCTIONS),
    ("gelu_tanh", lambda x: ww.gelu(x, approximate=True)),
    ("neg", lambda x: -x),
    ("abs", lambda x: ww.abs(x)),
    ("relu", ww.relu),
    ("isnan", ww.isnan),
]
COMPARISONS = [
    ("eq", lambda a, b: a == b),
    ("ne", lambda a, b: a != b),
    ("lt", lambda a, b: a < b),
    ("le", lambda a, b: a <= b),
    ("gt", lambda a, b: a > b),
    ("ge", lambda a, b: a >= b),
    ("select", lambda a, b: ww.where(a < b, a, b)),
]
EXTREMES = [
    ("max", ww.maximum),
    ("min", ww.minimum),
    ("max_ignore", lambda a, b: ww.maximum(a, b, nan="ignore")),
    ("min_ignore", lambda a, b: ww.minimum(a, b, nan="ignore")),
]
BINARY = [
    ("add", lambda a, b: a + b),
    ("sub", lambda a, b: a - b),
    ("mul", lambda a, b: a * b),
    ("div", lambda a, b: a / b),
    *EXTREMES,
    *COMPARISONS,
]


def all_codes(dtype: DType) -> np.ndarray:
    """Every value of an 8- or 16-bit format."""
    return np.arange(1 << dtype.bits, dtype=np.uint32).astype(f"u{dtype.nbytes}").view(dtype.numpy)


def specials(dtype: DType) -> np.ndarray:
    """Zeros, infinities, NaN, edges of normal and subnormal numbers, and numbers around which functions change."""
    info = np.finfo(np.float32) if dtype == f32 else ww_finfo(dtype)
    tiny, least = float(info.smallest_normal), float(info.smallest_subnormal)
    positive = [0.0, least, 3 * least, tiny - least, tiny, 1.5 * tiny, 0.5, 1 - 2.0**-8, 1.0, 1 + 2.0**-7, 2.0, 3.0]
    positive += [
        0.59,
        0.61,
        0.99,
        1.01,
        3.99,
        4.01,
        10.0,
        88.0,
        89.0,
        104.0,
        127.5,
        150.0,
        float(info.max),
        np.inf,
        np.nan,
    ]
    return np.array([*positive, *(-x for x in positive)], np.float64).astype(dtype.numpy)


def ww_finfo(dtype: DType):
    import ml_dtypes

    return ml_dtypes.finfo(dtype.numpy)


def pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All ordered pairs."""
    a, b = np.meshgrid(values, values, indexing="ij")
    return a.ravel().copy(), b.ravel().copy()


def random_bits(rng: np.random.Generator, dtype: DType, count: int) -> np.ndarray:
    """Uniform codes: all exponents alike."""
    return rng.integers(0, 1 << dtype.bits, count, np.uint64).astype(f"u{dtype.nbytes}").view(dtype.numpy)


def grid(dtype: DType, count: int) -> np.ndarray:
    """Where functions do something: evenly spaced numbers, and powers of two on a finer and finer scale."""
    even = np.linspace(-12, 12, count // 2)
    powers = np.exp2(np.linspace(-30, 7, count // 4))
    with np.errstate(over="ignore"):
        return np.concatenate([even, powers, -powers]).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_unary_functions(dtype):
    rng = np.random.default_rng(1)
    count = 1024
    x = np.concatenate([specials(dtype), random_bits(rng, dtype, count), grid(dtype, count)])
    agree_ops(UNARY, [x])


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
def test_unary_functions_on_every_value(dtype):
    agree_ops(UNARY, [all_codes(dtype)], block=256)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_binary_ops(dtype):
    rng = np.random.default_rng(2)
    a, b = pairs(specials(dtype)[::2] if dtype != f32 else specials(dtype))
    more = [rng.standard_normal(512).astype(dtype.numpy) for _ in range(2)]
    wild = [random_bits(rng, dtype, 512) for _ in range(2)]
    agree_ops(BINARY, [np.concatenate([a, more[0], wild[0]]), np.concatenate([b, more[1], wild[1]])])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_fma_rounds_once(dtype):
    rng = np.random.default_rng(3)
    few = np.array([0, -0.0, 1, -1.5, 3, np.inf, np.nan, 1e-4], np.float64).astype(dtype.numpy)
    triples = [np.array(x, dtype.numpy) for x in zip(*itertools.product(few, repeat=3), strict=True)]
    a, b = (random_bits(rng, dtype, 1024) for _ in range(2))
    with np.errstate(all="ignore"):
        product = a.astype(np.float64) * b.astype(np.float64)
        nearly = (-product * (1 + rng.choice([0, 2.0**-8, -(2.0**-12), 2.0**-24], 1024))).astype(dtype.numpy)
    third = np.where(rng.random(1024) < 0.5, nearly, random_bits(rng, dtype, 1024))
    arrays = [np.concatenate(x) for x in zip(triples, (a, b, third), strict=True)]
    agree_ops([("fma", ww.fma), ("mul_add", lambda a, b, c: a * b + c)], arrays)


INTEGER_BINARY = [
    ("add", lambda a, b: a + b),
    ("sub", lambda a, b: a - b),
    ("mul", lambda a, b: a * b),
    ("and", lambda a, b: a & b),
    ("or", lambda a, b: a | b),
    ("xor", lambda a, b: a ^ b),
    ("max", ww.maximum),
    ("min", ww.minimum),
    ("neg", lambda a, b: -a),
    ("abs", lambda a, b: ww.abs(a)),
    ("relu", lambda a, b: ww.relu(a)),
    ("not", lambda a, b: ~a),
    *COMPARISONS,
]


def integers(dtype: DType, count: int = 24) -> np.ndarray:
    """Edges and random numbers of all magnitudes."""
    rng = np.random.default_rng(4)
    edges = [0, 1, -1, 2, 3, -3, 7, dtype.max, dtype.max - 1, dtype.min, dtype.min + 1]
    some = [
        int(x) >> int(s)
        for x, s in zip(rng.integers(dtype.min, dtype.max, count), rng.integers(0, dtype.bits, count), strict=True)
    ]
    return np.array(edges + some, dtype.numpy)


@pytest.mark.parametrize("dtype", [i8, i32, i64], ids=str)
def test_integer_ops(dtype):
    a, b = pairs(integers(dtype))
    agree_ops(INTEGER_BINARY, [a, b])


@pytest.mark.parametrize("dtype", [i8, i32, i64], ids=str)
def test_division_of_integers_rounds_down(dtype):
    a, b = pairs(integers(dtype))
    defined = (b != 0) & ~((a == dtype.min) & (b == -1))
    agree_ops([("floordiv", lambda a, b: a // b), ("mod", lambda a, b: a % b)], [a[defined], b[defined]])


@pytest.mark.parametrize("dtype", [i8, i32, i64], ids=str)
def test_shifts(dtype):
    a, b = pairs(integers(dtype))
    agree_ops([("shl", lambda a, b: a << b), ("shr", lambda a, b: a >> b)], [a, b % dtype.bits])


def test_bools():
    a, b = pairs(np.array([False, True]))
    cases = [
        ("and", lambda a, b: a & b),
        ("or", lambda a, b: a | b),
        ("xor", lambda a, b: a ^ b),
        ("not", lambda a, b: ~a),
    ]
    cases += [("eq", lambda a, b: a == b), ("ne", lambda a, b: a != b), ("select", lambda a, b: ww.where(a, b, a))]
    casts = [(f"to {d}", lambda a, b, d=d: ww.cast(a, d)) for d in (f32, bf16, fp8e4m3, i8, i64)]
    agree_ops(cases + casts, [a, b])


@pytest.mark.parametrize(
    "dtype", [FP8[0], FP8[3], *(pytest.param(d, marks=pytest.mark.sweep) for d in FP8[1:3])], ids=str
)
def test_fp8_comparisons(dtype):
    values = all_codes(dtype)[::7]
    a, b = pairs(values)
    agree_ops([*COMPARISONS, ("isnan", lambda a, b: ww.isnan(a))], [a, b])


@pytest.mark.parametrize(("one", "other"), [(f32, i32), (f16, bf16), (fp8e4m3, i8), (i64, i64)], ids=str)
def test_bitcasts_keep_bits(one, other):
    x = random_bits(np.random.default_rng(5), one, 256)
    view = x.view(f"u{one.nbytes}")
    if one == f16:
        x = x[((view >> 10) & 31) != 31]  # NaN payloads are compared as one NaN
    agree_ops(
        [("there", lambda x: ww.bitcast(x, other)), ("back", lambda x: ww.bitcast(ww.bitcast(x, other), one))], [x]
    )
