"""Scalar float functions against float64, mpmath and Fractions: accuracy, special values, IEEE division."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from warpwave.backends.amd.sim._sim import arith

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")

INF, NAN = np.inf, np.nan
TINY32 = np.float32(2.0**-126)


def _f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def _random_f32(count: int, seed: int) -> np.ndarray:
    """Random bit patterns: all exponents, subnormals, infinities and NaNs."""
    return np.random.default_rng(seed).integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)


def _flushed(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < TINY32, np.copysign(np.float32(0), x), x)


def _ulp_error(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance to the float64 (or longdouble) value in units of the result's last place."""
    return np.abs(got.astype(np.longdouble) - want) / np.spacing(np.abs(got.astype(np.float32))).astype(np.longdouble)


def _check_ulp(function, reference, x: np.ndarray, bound: float) -> None:
    with np.errstate(all="ignore"):
        want = reference(_flushed(x).astype(np.longdouble))
        want = np.where(np.abs(want) < TINY32, np.copysign(0, want), want)
    got = function(x)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    infinite = np.isinf(got) | (np.abs(want) > np.finfo(np.float32).max)
    assert np.array_equal(got[infinite], want[infinite].astype(np.float32))
    plain = np.isfinite(got) & ~infinite & (np.abs(want) >= TINY32)
    assert plain.sum() > 100
    assert _ulp_error(got[plain], want[plain]).max() <= bound
    zero = np.isfinite(want) & (np.abs(want) < TINY32)
    assert (got[zero] == 0).all()


def test_exp2_within_an_ulp():
    x = np.concatenate([np.linspace(-140, 140, 200_001, dtype=np.float32), _random_f32(50_000, 1)])
    _check_ulp(arith.exp2_f32, np.exp2, x, 0.51)


def test_log2_within_an_ulp():
    near_one = (np.arange(0x3F7F0000, 0x3F810000, dtype=np.uint32)).view(np.float32)
    _check_ulp(arith.log2_f32, np.log2, np.concatenate([_random_f32(200_000, 2), near_one]), 0.51)


@pytest.mark.parametrize(
    ("name", "reference"),
    [("rcp", lambda x: 1 / x), ("sqrt", np.sqrt), ("rsqrt", lambda x: 1 / np.sqrt(x))],
)
def test_roots_and_reciprocals_within_an_ulp(name, reference):
    _check_ulp(getattr(arith, f"{name}_f32"), reference, _random_f32(200_000, 3), 0.51)


def test_sin_and_cos_are_in_turns():
    mpmath.mp.dps = 30
    x = np.concatenate([np.linspace(-2, 2, 4001), np.linspace(-256, 256, 2001)]).astype(np.float32)
    sin, cos = arith.sin_f32(x), arith.cos_f32(x)
    for at, value in enumerate(x):
        assert abs(float(sin[at]) - float(mpmath.sinpi(2 * mpmath.mpf(float(value))))) <= 2.0**-24
        assert abs(float(cos[at]) - float(mpmath.cospi(2 * mpmath.mpf(float(value))))) <= 2.0**-24


@pytest.mark.parametrize(
    ("name", "source", "result"),
    [
        ("exp2", -INF, 0.0),
        ("exp2", INF, INF),
        ("exp2", -126.5, 0.0),
        ("exp2", 128.0, INF),
        ("log2", 0.0, -INF),
        ("log2", -0.0, -INF),
        ("log2", 1e-40, -INF),
        ("log2", -1.0, NAN),
        ("log2", INF, INF),
        ("rcp", 0.0, INF),
        ("rcp", -0.0, -INF),
        ("rcp", 1e-40, INF),
        ("rcp", 3e38, 0.0),
        ("rcp", -INF, -0.0),
        ("rsqrt", -0.0, -INF),
        ("rsqrt", -1.0, NAN),
        ("rsqrt", INF, 0.0),
        ("sqrt", -0.0, -0.0),
        ("sqrt", -1e-40, -0.0),
        ("sqrt", -1.0, NAN),
        ("sin", INF, NAN),
        ("sin", 300.0, 0.0),
        ("sin", -0.0, -0.0),
        ("sin", 0.25, 1.0),
        ("cos", 300.0, 1.0),
        ("cos", 0.5, -1.0),
        ("cos", -INF, NAN),
    ],
)
def test_special_values(name, source, result):
    got = getattr(arith, f"{name}_f32")(_f32(source))[0]
    assert np.array_equal(got, np.float32(result), equal_nan=True)
    assert np.isnan(got) or np.signbit(got) == np.signbit(np.float32(result))


@pytest.mark.parametrize("name", ["exp2", "log2", "rcp", "sqrt", "rsqrt"])
def test_half_functions_round_once_for_every_code(name):
    codes = np.arange(1 << 16, dtype=np.uint16)
    x = codes.view(np.float16).astype(np.float64)
    reference = {"exp2": np.exp2, "log2": np.log2, "rcp": lambda v: 1 / v, "sqrt": np.sqrt}
    with np.errstate(all="ignore"):
        want = (1 / np.sqrt(x) if name == "rsqrt" else reference[name](x)).astype(np.float16)
    got = getattr(arith, f"{name}_f16")(codes).view(np.float16)
    assert np.array_equal(got, want, equal_nan=True)


def test_f64_seeds_have_the_promised_accuracy_and_no_more():
    x = np.exp(np.random.default_rng(4).uniform(-300, 300, 20_000))
    for name, want in (("rcp", 1 / x), ("rsqrt", 1 / np.sqrt(x)), ("sqrt", np.sqrt(x))):
        error = np.abs(getattr(arith, f"{name}_f64")(x) / want - 1)
        assert error.max() < 2.0**-24
        assert error.max() > 2.0**-40


# ---- division


def _divide(n: np.ndarray, d: np.ndarray, kind: str) -> np.ndarray:
    """LLVM's expansion of fdiv (SIISelLowering LowerFDIV32/64), one instruction a line."""

    def f(name: str):
        return getattr(arith, f"{name}_{kind}")

    ds, ns = f("div_scale")(d, d, n), f("div_scale")(n, d, n)
    vcc = f("div_scale_vcc")(n, d, n)
    minus = -ds
    r = f("rcp")(ds)
    one = np.ones_like(r)
    for _ in range(1 if kind == "f32" else 2):
        r = f("fma")(f("fma")(minus, r, one), r, r)
    q = f("mul")(ns, r)
    if kind == "f32":
        q = f("fma")(f("fma")(minus, q, ns), r, q)
    e = f("fma")(minus, q, ns)
    m = np.where(vcc != 0, f("div_fmas_vcc")(e, r, q), f("div_fmas")(e, r, q))
    return f("div_fixup")(m, d, n)


def _same(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    return (got == want) & (np.signbit(got) == np.signbit(want)) | (np.isnan(got) & np.isnan(want))


def test_division_sequence_is_ieee_f32():
    n, d = _random_f32(400_000, 5), _random_f32(400_000, 6)
    with np.errstate(all="ignore"):
        want = n / d
        assert _same(_divide(n, d, "f32"), want).all()


def test_division_sequence_is_ieee_f64():
    rng = np.random.default_rng(7)
    n, d = (rng.integers(0, 1 << 64, 400_000, dtype=np.uint64).view(np.float64) for _ in range(2))
    with np.errstate(all="ignore"):
        want = n / d
        got = _divide(n, d, "f64")
    assert _same(got, want).all()


@pytest.mark.parametrize(
    ("n", "d", "q"),
    [
        (0.0, 0.0, NAN),
        (INF, INF, NAN),
        (1.0, 0.0, INF),
        (-1.0, 0.0, -INF),
        (0.0, -5.0, -0.0),
        (3.0, -INF, -0.0),
    ],
)
def test_division_of_special_values(n, d, q):
    got = _divide(_f32(n), _f32(d), "f32")
    assert _same(got, _f32(q)).all()


# ---- minimum, maximum, rounding, exponents


def test_min_max_order_zeros_and_prefer_numbers():
    snan = np.array([0x7F800001], np.uint32).view(np.float32)
    assert not np.signbit(arith.max_f32(_f32(-0.0), _f32(0.0)))[0]
    assert np.signbit(arith.min_f32(_f32(0.0), _f32(-0.0)))[0]
    assert arith.min_f32(_f32(NAN), _f32(1.0))[0] == 1
    assert arith.max_f32(_f32(2.0), _f32(NAN))[0] == 2
    assert np.isnan(arith.max_ieee_f32(_f32(1.0), snan)[0])
    assert arith.max_f32(_f32(1.0), snan)[0] == 1
    assert np.isnan(arith.minimum_f32(_f32(NAN), _f32(1.0))[0])
    assert np.signbit(arith.minimum_f32(_f32(0.0), _f32(-0.0)))[0]


def test_med3_is_the_middle():
    rng = np.random.default_rng(8)
    a, b, c = rng.standard_normal((3, 10_000)).astype(np.float32)
    assert np.array_equal(arith.med3_f32(a, b, c), np.median([a, b, c], axis=0).astype(np.float32))
    assert arith.med3_f32(_f32(NAN), _f32(3.0), _f32(2.0))[0] == 2


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_rounding_and_exponent_functions(kind):
    dtype = np.dtype(kind.replace("f", "float"))
    rng = np.random.default_rng(9)
    bits = rng.integers(0, 1 << 64, 100_000, dtype=np.uint64)
    x = bits.view(np.float64) if kind == "f64" else (bits >> 32).astype(np.uint32).view(np.float32)
    x = np.concatenate([x, np.arange(-64, 64, 0.25).astype(dtype)])
    finite = x[np.isfinite(x)]
    assert _same(getattr(arith, f"rndne_{kind}")(finite), np.rint(finite)).all()
    mantissa, exponent = np.frexp(finite)
    assert np.array_equal(getattr(arith, f"frexp_mant_{kind}")(finite), mantissa)
    assert np.array_equal(getattr(arith, f"frexp_exp_{kind}")(finite), exponent)
    assert (getattr(arith, f"frexp_exp_{kind}")(x[~np.isfinite(x)]) == 0).all()
    fract = getattr(arith, f"fract_{kind}")(finite)
    assert np.array_equal(fract, np.minimum(finite - np.floor(finite), np.nextafter(dtype.type(1), dtype.type(0))))
    shift = rng.integers(-400, 400, len(finite)).astype(np.int32)
    with np.errstate(over="ignore", under="ignore"):
        assert _same(getattr(arith, f"ldexp_{kind}")(finite, shift), np.ldexp(finite, shift)).all()


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_float_to_integer_truncates_and_saturates(kind):
    dtype = np.dtype(kind.replace("f", "float"))
    x = np.array([0.9, -0.9, 2.5, -2.5, 2.0**31, -(2.0**31), 2.0**32, 1e30, -1e30, INF, -INF, 2147483520.0], dtype)
    signed = [
        0,
        0,
        2,
        -2,
        2**31 - 1,
        -(2**31),
        2**31 - 1,
        2**31 - 1,
        -(2**31),
        2**31 - 1,
        -(2**31),
        2147483520,
    ]
    unsigned = [0, 0, 2, 0, 2**31, 0, 2**32 - 1, 2**32 - 1, 0, 2**32 - 1, 0, 2147483520]
    assert getattr(arith, f"to_i32_{kind}")(x).tolist() == signed
    assert getattr(arith, f"to_u32_{kind}")(x).tolist() == unsigned
    assert getattr(arith, f"to_i32_{kind}")(np.array([NAN], dtype))[0] == 0


# ---- f16 arithmetic


def _half_operands(seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(0, 1 << 16, 200_000).astype(np.uint16) for _ in range(3))


def test_half_sums_and_products_equal_numpy():
    a, b, _ = _half_operands(10)
    x, y = a.view(np.float16), b.view(np.float16)
    with np.errstate(all="ignore"):
        cases = [("add", x + y), ("mul", x * y)]
    for name, want in cases:
        slow = getattr(arith, f"{name}_f16")(a, b, 0, False).view(np.float16)
        quick = getattr(arith, f"quick_{name}_f16")(a, b).view(np.float16)
        assert _same(slow, want).all()
        assert _same(quick, want).all()


def test_half_fma_rounds_once():
    a, b, c = (x[:20_000] for x in _half_operands(11))
    got = arith.fma_f16(a, b, c, 0)
    for at in range(len(a)):
        x, y, z = (float(v[at : at + 1].view(np.float16)[0]) for v in (a, b, c))
        if not np.isfinite([x, y, z]).all():
            continue
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if exact != 0:
            assert arith.encode("f16", np.array([_round_to_odd(exact)]))[0] == got[at]


def _round_to_odd(exact: Fraction) -> float:
    """A float64 that rounds to f16 as the exact value does."""
    value = float(exact)
    if Fraction(value) == exact:
        return value
    low = value if Fraction(value) < exact else np.nextafter(value, -INF)
    bits = np.array([low, np.nextafter(low, INF)])
    return float(bits[bits.view(np.uint64) & np.uint64(1) == 1][0])


@pytest.mark.parametrize("mode", [1, 2, 3])
def test_half_sums_in_directed_modes_bracket_the_exact_sum(mode):
    a, b, _ = _half_operands(12)
    x, y = (v.view(np.float16).astype(np.float64) for v in (a, b))
    exact = x + y
    inside = np.isfinite(exact) & (np.abs(exact) < 65504)
    got = arith.add_f16(a, b, mode, False).view(np.float16).astype(np.float64)
    low, high = {1: (got >= exact, None), 2: (got <= exact, None), 3: (np.abs(got) <= np.abs(exact), None)}[mode]
    assert high is None
    assert low[inside].all()
    step = np.spacing(np.abs(got).astype(np.float16)).astype(np.float64)
    assert (np.abs(got - exact)[inside] < step[inside]).all()
