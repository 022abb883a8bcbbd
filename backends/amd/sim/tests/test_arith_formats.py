"""Small float formats: every code against ml_dtypes, every rounding against a search over the code table."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpwave.backends.amd.sim._sim import arith

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in cast:RuntimeWarning")

DTYPES = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp8_ocp": np.dtype(ml_dtypes.float8_e4m3fn),
    "bf8_ocp": np.dtype(ml_dtypes.float8_e5m2),
    "fp8_fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "bf8_fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "fp6": np.dtype(ml_dtypes.float6_e2m3fn),
    "bf6": np.dtype(ml_dtypes.float6_e3m2fn),
    "fp4": np.dtype(ml_dtypes.float4_e2m1fn),
}
WIDTHS = {"f16": 16, "bf16": 16, "fp6": 6, "bf6": 6, "fp4": 4}
NEAREST, UP, DOWN, ZERO = range(4)


def _codes(name: str) -> np.ndarray:
    return np.arange(1 << WIDTHS.get(name, 8), dtype=np.uint64)


def _reference_values(name: str) -> np.ndarray:
    codes = _codes(name)
    store = np.uint16 if WIDTHS.get(name, 8) == 16 else np.uint8
    return codes.astype(store).view(DTYPES[name]).astype(np.float64)


def _interesting(name: str) -> np.ndarray:
    """All values, all midpoints and their neighbours, and values far outside."""
    values = np.unique(_reference_values(name)[np.isfinite(_reference_values(name))])
    middles = (values[1:] + values[:-1]) / 2
    near = np.concatenate([np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf)])
    ends = np.array([values[-1] * f for f in (1.01, 1.05, 1.1, 2, 1e30)])
    return np.concatenate([values, middles, near, ends, -ends, [5e-324, -5e-324]])


@pytest.mark.parametrize("name", DTYPES)
def test_decode_every_code(name):
    got, want = arith.decode(name, _codes(name)), _reference_values(name)
    assert np.array_equal(got, want, equal_nan=True)
    assert np.array_equal(np.signbit(got), np.signbit(want) & ~np.isnan(want))


@pytest.mark.parametrize("name", DTYPES)
def test_encode_is_the_inverse_of_decode(name):
    values = _reference_values(name)
    finite = ~np.isnan(values)
    assert np.array_equal(arith.encode(name, values)[finite], _codes(name)[finite])


@pytest.mark.parametrize("name", [n for n in DTYPES if n not in ("fp6", "bf6", "fp4")])
def test_nearest_even_agrees_with_ml_dtypes(name):
    values = _interesting(name)
    store = np.uint16 if WIDTHS.get(name, 8) == 16 else np.uint8
    want = values.astype(DTYPES[name]) if name == "f16" else _nearest_through_table(name, values)
    assert np.array_equal(arith.encode(name, values), want.view(store).astype(np.uint64))


def _nearest_through_table(name: str, values: np.ndarray) -> np.ndarray:
    """ml_dtypes converts from float32 at most once: values between two of those move to the farther one."""
    exact_in_f32 = values.astype(np.float32).astype(np.float64) == values
    near = values.astype(np.float32)
    beyond = np.nextafter(near, np.where(values > near, np.inf, -np.inf).astype(np.float32))
    return np.where(exact_in_f32, near, beyond).astype(DTYPES[name])


@pytest.mark.parametrize("name", ["fp6", "bf6", "fp4"])
def test_tiny_formats_saturate(name):
    values = _interesting(name)
    table = _reference_values(name)
    got = arith.decode(name, arith.encode(name, values))
    bounded = np.clip(values, table.min(), table.max())
    distance = np.abs(got - bounded)
    best = np.abs(table[None, :] - bounded[:, None]).min(axis=1)
    assert np.array_equal(distance, best)
    middle = (np.abs(table[None, :] - bounded[:, None]) == best[:, None]).sum(axis=1) > 1
    ties = middle & (best > 0)
    assert ties.any()
    assert (arith.encode(name, values)[ties] & 1 == 0).all()


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("mode", [UP, DOWN, ZERO])
def test_directed_rounding(name, mode):
    values = _interesting(name)
    table = np.unique(_reference_values(name)[np.isfinite(_reference_values(name))])
    inside = values[(values >= table[0]) & (values <= table[-1])]
    got = arith.decode(name, arith.encode(name, inside, mode))
    below = table[np.searchsorted(table, inside, side="right") - 1]
    above = table[np.searchsorted(table, inside, side="left")]
    towards_zero = np.where(inside < 0, above, below)
    assert np.array_equal(got, {UP: above, DOWN: below, ZERO: towards_zero}[mode])


@pytest.mark.parametrize("name", ["fp8_ocp", "bf8_ocp", "fp8_fnuz", "bf8_fnuz", "f16", "bf16"])
def test_overflow_is_special_or_saturates(name):
    big = np.array([1e39, -1e39, np.inf, -np.inf])
    limit = np.nanmax(np.where(np.isfinite(_reference_values(name)), _reference_values(name), np.nan))
    saturated = arith.decode(name, arith.encode(name, big, NEAREST, True))
    assert saturated.tolist() == [limit, -limit, limit, -limit]
    special = arith.decode(name, arith.encode(name, big))
    has_infinity = np.isinf(_reference_values(name)).any()
    assert np.isinf(special).all() if has_infinity else np.isnan(special).all()


@pytest.mark.parametrize("name", ["fp8_ocp", "bf8_ocp", "fp8_fnuz", "bf8_fnuz", "fp4", "fp6", "bf6", "f16", "bf16"])
def test_stochastic_rounding_brackets_and_is_unbiased(name):
    table = np.unique(_reference_values(name)[np.isfinite(_reference_values(name))])
    rng = np.random.default_rng(1)
    at = rng.integers(0, len(table) - 1, 40)
    for low, high in zip(table[at], table[at + 1], strict=True):
        value = np.float64(np.float32(low + (high - low) * rng.random()))
        random = np.arange(4096, dtype=np.uint64) << 20
        got = arith.decode(name, arith.encode_stochastic(name, np.full(4096, value), random.astype(np.uint32)))
        assert set(got) <= {low, high}
        assert abs(got.mean() - value) <= (high - low) / 1024
    exact = arith.encode_stochastic(name, table, np.full(len(table), 0xFFFFFFFF, np.uint32))
    assert np.array_equal(arith.decode(name, exact), table)


def test_f16_widening_is_exact_for_every_code():
    codes = np.arange(1 << 16, dtype=np.uint16)
    got, want = arith.f16_to_f32(codes), codes.view(np.float16).astype(np.float32)
    assert np.array_equal(got.view(np.uint32)[~np.isnan(want)], want.view(np.uint32)[~np.isnan(want)])
    assert np.isnan(got[np.isnan(want)]).all()


@given(st.lists(st.floats(width=32), min_size=1, max_size=200))
def test_fast_narrowing_equals_numpy(values):
    x = np.array(values, np.float32)
    half, brain = x.astype(np.float16), x.astype(ml_dtypes.bfloat16)
    number = ~np.isnan(x)
    assert np.array_equal(arith.f32_to_f16(x)[number], half.view(np.uint16)[number])
    assert np.array_equal(arith.f32_to_bf16(x)[number], brain.view(np.uint16)[number])


def test_fast_narrowing_at_every_f16_midpoint():
    values = _interesting("f16").astype(np.float32)
    values = np.concatenate([np.nextafter(values, d) for d in (np.float32(np.inf), np.float32(-np.inf))] + [values])
    want = values.astype(np.float16).view(np.uint16)
    assert np.array_equal(arith.f32_to_f16(values), want)


# ---- the conversions that loops over lanes use


def _single_floats(step: int) -> np.ndarray:
    """Every exponent with many significands, and the neighbours of each; NaNs and infinities among them."""
    rng = np.random.default_rng(3)
    top = np.arange(0, 1 << 32, step, dtype=np.uint64)
    near = top + rng.integers(0, step, top.size, dtype=np.uint64)
    return np.concatenate([top, top + 1, (top - 1) & 0xFFFFFFFF, near]).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("name", ["fp8_ocp", "bf8_ocp", "fp8_fnuz", "bf8_fnuz"])
def test_quick_bytes_equal_the_general_conversion(name, saturate):
    values = _single_floats(1 << 15)
    got = getattr(arith, f"quick_{name}")(values, saturate)
    np.testing.assert_array_equal(got, arith.encode(name, values.astype(np.float64), NEAREST, saturate))


def test_quick_halves_equal_numpy_and_the_general_conversion():
    values = _single_floats(1 << 13)
    number = values[~np.isnan(values)]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(arith.f32_to_f16(number), number.astype(np.float16).view(np.uint16))
    inside = number[np.isfinite(number)]
    want = arith.encode("f16", inside.astype(np.float64), ZERO)
    np.testing.assert_array_equal(arith.f32_to_f16_toward_zero(inside), want)
    infinite = np.array([np.inf, -np.inf], np.float32)
    assert arith.f32_to_f16_toward_zero(infinite).tolist() == [0x7C00, 0xFC00]
    assert (arith.f32_to_f16_toward_zero(values[np.isnan(values)]) & 0x7E00 == 0x7E00).all()
