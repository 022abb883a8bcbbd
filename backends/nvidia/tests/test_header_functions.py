"""The extension header on a GPU: accuracy over all f32, conversions, arithmetic, memory. Run with `pytest -m gpu`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from warpwave.backends.nvidia.tests.device_driver import At
from warpwave.backends.nvidia.tests.device_kernels import needs_device, run_kernel
from warpwave.tiles import dtypes
from warpwave.tiles.reference.accuracy import ACCURACY, Allowance
from warpwave.tiles.reference.formats import TO_INTEGER, round_to, store_as

pytestmark = [pytest.mark.gpu, needs_device]
Array = npt.NDArray[Any]
RNG = np.random.default_rng(9)
FUNCTIONS = {**ACCURACY, "sqrt": Allowance(0.5)}
ROUNDINGS = ("rne", "rtz", "rta", "rtp", "rtn")
FORMATS = ("f16", "bf16", "fp8e4m3", "fp8e5m2", "fp8e4m3fnuz", "fp8e5m2fnuz")


@pytest.fixture(autouse=True)
def _special_values() -> Iterator[None]:
    """NaN and infinities are among the inputs and expected results."""
    with np.errstate(all="ignore"):
        yield


def run(kernel: str, out: Array, *arguments: Any, grid: int = 1, threads: int = 256) -> Array:
    """The first array after the kernel; arrays are passed by address, numbers by value."""
    arrays = [out, *(a for a in arguments if isinstance(a, np.ndarray))]
    places = iter(range(1, len(arrays)))
    parameters = [At(next(places)) if isinstance(a, np.ndarray) else a for a in arguments]
    return run_kernel("functions", kernel, arrays, At(0), *parameters, threads=threads, grid=grid)[0]


def same_bits(a: Array, b: Array) -> Array:
    """Equal bits, or both NaN."""
    kind = f"u{a.dtype.itemsize}"
    return (a.view(kind) == b.view(kind)) | (np.isnan(a) & np.isnan(b))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_accuracy_over_all_inputs(name: str) -> None:
    allowed = FUNCTIONS[name]
    zeros = np.zeros(3, np.uint64)
    got = run(
        f"accuracy_{name}", zeros, float(allowed.ulps), float(allowed.argument_ulps), int(allowed.flushes), grid=2048
    )
    ratio = np.uint32(int(got[0]) >> 32).view(np.float32)
    worst = np.uint32(int(got[0]) & 0xFFFFFFFF).view(np.float32)
    print(f"{name}: {ratio:.3f} of {allowed.ulps} ulp at {worst!r}; {got[1]} inexact special results")
    exception = np.uint32(int(got[2]) & 0xFFFFFFFF).view(np.float32)
    assert got[1] == 0, f"{got[1]} special results, among them that of {exception!r}"
    assert ratio <= 1, f"{ratio} of the allowance at {worst!r}"


def test_instructions_agree_with_integer_arithmetic() -> None:
    assert not run("encoders", np.zeros(6, np.uint64), grid=2048).any()


def samples() -> Array:
    """Values around every boundary of the short formats, and random ones."""
    around = []
    for name in FORMATS:
        kind = getattr(dtypes, name).numpy
        codes = np.arange(2 ** (8 * np.dtype(kind).itemsize), dtype=f"u{np.dtype(kind).itemsize}")[
            :: 1 if "8" in name else 37
        ]
        values = codes.view(kind).astype(np.float64)
        values = np.sort(values[np.isfinite(values)])
        middles = (values[1:] + values[:-1]) / 2
        around += [
            values,
            middles,
            np.array([values[-1] * 1.03, values[-1] * 1.07, values[-1] * 2, -values[-1] * 1.07]),
        ]
    base = np.concatenate(around).astype(np.float32)
    near = [base, np.nextafter(base, np.float32(np.inf)), np.nextafter(base, np.float32(-np.inf))]
    random = RNG.integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)
    return np.concatenate([*near, random, special])


def test_encoding_in_every_rounding() -> None:
    x = samples()
    n = len(x)
    got = run("samples", np.zeros((6, 5, 2, n), np.uint16), x, n, grid=-(-n // 256))
    for f, name in enumerate(FORMATS):
        dtype = getattr(dtypes, name)
        for r, rounding in enumerate(ROUNDINGS):
            for saturate in (False, True):
                want = store_as(round_to(x.astype(np.float64), dtype, rounding, saturate=saturate), dtype)
                codes = got[f, r, int(saturate)].astype(f"u{dtype.nbytes}").view(dtype.numpy)
                equal = same_bits(codes, want)
                at = int(np.argmin(equal))
                assert equal.all(), f"{name} {rounding} {saturate}: {x[at]!r} gives {codes[at]!r}, not {want[at]!r}"


def test_decoding_every_code() -> None:
    got = run("decoders", np.zeros((6, 65536), np.float32), grid=256)
    for f, name in enumerate(FORMATS):
        dtype = getattr(dtypes, name)
        codes = np.arange(65536).astype(f"u{dtype.nbytes}")
        assert same_bits(got[f], codes.view(dtype.numpy).astype(np.float32)).all(), name


def test_integers() -> None:
    halves = np.arange(-300, 300) / 2
    big = np.array(
        [2.0**31, 2.0**31 - 128, -(2.0**31), 2.0**63, -(2.0**63), 1e30, -1e30, np.inf, -np.inf, np.nan, 127.5, -128.5]
    )
    x = np.concatenate([halves, big]).astype(np.float32)
    spread = RNG.integers(-(2**63), 2**63 - 1, len(x), dtype=np.int64) >> RNG.integers(0, 63, len(x))
    ties = np.array([2**24 + 1, 2**24 + 3, -(2**24) - 1, 2**63 - 1, -(2**63), 2**40 + 2**16, 257, -385, 0], np.int64)
    spread[: len(ties)] = ties
    n = len(x)
    got = run("integers", np.zeros((27, n), np.int64), x, spread, n, grid=-(-n // 256))
    planes = iter(got)
    for rounding in ROUNDINGS:
        whole = TO_INTEGER[rounding](x.astype(np.float64))
        for bits in (8, 32, 64):
            low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
            want = [0 if np.isnan(w) else high if w >= high else low if w <= low else int(w) for w in whole]
            np.testing.assert_array_equal(next(planes), np.array(want, np.int64), err_msg=f"i{bits} {rounding}")
        for kind, bits in (("f32", 32), ("bf16", 16)):
            plane = next(planes)
            want = np.array([_rounded(int(w), rounding, kind) for w in spread], np.float64)
            values = plane.astype(f"u{bits // 8}").view(getattr(dtypes, kind).numpy).astype(np.float64)
            np.testing.assert_array_equal(values, want, err_msg=f"{kind} {rounding}")
    np.testing.assert_array_equal(next(planes), np.clip(spread, -128, 127))
    np.testing.assert_array_equal(next(planes), np.clip(spread, -(2**31), 2**31 - 1))


def _rounded(x: int, rounding: str, kind: str) -> float:
    """An integer in a float format, in exact arithmetic."""
    digits = {"f32": 24, "bf16": 8}[kind]
    shift = max(abs(x).bit_length() - digits, 0)
    scaled = Fraction(x, 1 << shift)
    below = scaled.numerator // scaled.denominator
    rest = scaled - below
    up = {
        "rne": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1),
        "rta": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and x > 0),
        "rtp": rest > 0,
        "rtn": False,
        "rtz": rest > 0 and x < 0,
    }[rounding]
    return float((below + up) << shift)


def test_extremes() -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.0e38], np.float32)
    a, b = (m.reshape(-1).copy() for m in np.meshgrid(values, values))
    got = run("extremes", np.zeros((4, len(a)), np.float32), a, b, len(a))
    low = np.where(
        (a == 0) & (b == 0), np.where(np.signbit(a) | np.signbit(b), np.float32(-0.0), np.float32(0)), np.minimum(a, b)
    )
    high = np.where(
        (a == 0) & (b == 0), np.where(np.signbit(a) & np.signbit(b), np.float32(-0.0), np.float32(0)), np.maximum(a, b)
    )
    one_nan = np.isnan(a) ^ np.isnan(b)
    number = np.where(np.isnan(a), b, a)
    for plane, want in zip(
        got, (high, low, np.where(one_nan, number, high), np.where(one_nan, number, low)), strict=True
    ):
        assert same_bits(plane, want.astype(np.float32)).all()


def test_short_arithmetic_rounds_once() -> None:
    n = 20000
    a, b, c = (RNG.integers(0, 65536, n).astype(np.uint16) for _ in range(3))
    c[: n // 2] = (a[: n // 2] & 0x7FFF) ^ 0x8001  # near cancellation
    got = run("short_arithmetic", np.zeros((6, n), np.uint16), a, b, c, n, grid=-(-n // 256))
    x, y = (v.view(np.float16).astype(np.float64) for v in (a, b))
    wanted = [x + y, x - y, x * y]  # exact in float64
    for plane, want in zip(got[:3], wanted, strict=True):
        assert same_bits(plane.view(np.float16), want.astype(np.float16)).all()
    quotient = (x / y).astype(np.float16)
    assert same_bits(got[3].view(np.float16), quotient).all()
    for plane, kind, dtype in ((got[4], np.float16, dtypes.f16), (got[5], ml_dtypes.bfloat16, dtypes.bf16)):
        p, q, r = (v.view(kind).astype(np.float64) for v in (a, b, c))
        want = np.array([_fused(*t) for t in zip(p, q, r, strict=True)])
        stored = store_as(round_to(want, dtype), dtype)
        equal = same_bits(plane.view(kind), stored)
        at = int(np.argmin(equal))
        assert equal.all(), (p[at], q[at], r[at], plane.view(kind)[at], stored[at])


def _fused(a: float, b: float, c: float) -> float:
    """a * b + c rounded to odd in float64: rounding that to a short format is the only rounding."""
    product = a * b
    if not np.isfinite(product) or not np.isfinite(c):
        return product + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return product + c
    near = float(exact)
    if Fraction(near) == exact:
        return near
    toward = near if abs(Fraction(near)) < abs(exact) else float(np.nextafter(near, 0.0))
    bits = np.float64(toward).view(np.uint64) | np.uint64(1)
    return float(bits.view(np.float64))


def test_divisions_and_random_bits() -> None:
    n = 4096
    a, b = (RNG.integers(-(2**31), 2**31, n).astype(np.int32) >> RNG.integers(0, 31, n) for _ in range(2))
    a[:4], b[:4] = [-(2**31), 7, -7, 5], [-1, 0, 0, -1]
    got = run("divisions", np.zeros((6, n), np.int32), a.astype(np.int32), b.astype(np.int32), n, grid=16)
    plain = b != 0
    wide_a, wide_b = a.astype(np.int64)[plain], b.astype(np.int64)[plain]
    np.testing.assert_array_equal(got[0][plain], (wide_a // wide_b).astype(np.int32))
    np.testing.assert_array_equal(got[1][plain], wide_a % wide_b)
    np.testing.assert_array_equal(got[2][plain], (wide_a // wide_b).astype(np.int32))
    small_a, small_b = a.astype(np.int8).astype(int), b.astype(np.int8).astype(int)
    nonzero = small_b != 0
    np.testing.assert_array_equal(got[3][nonzero], (small_a[nonzero] // small_b[nonzero]).astype(np.int8))
    np.testing.assert_array_equal(got[4][nonzero], small_a[nonzero] % small_b[nonzero])
    for i in range(0, n, 97):
        block = _philox(int(a[i]), int(b[i]), 0x123456789ABCDEF0 + i, 0xFEDCBA9876543210)
        assert int(got[5][i]) & 0xFFFFFFFF == block[i & 3]


def _philox(c0: int, c1: int, offset: int, seed: int) -> list[int]:
    """Philox4x32-10 as published (Salmon et al., SC'11)."""
    mask = 0xFFFFFFFF
    c = [c0 & mask, c1 & mask, offset & mask, offset >> 32 & mask]
    k0, k1 = seed & mask, seed >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & mask, (p0 >> 32) ^ c[3] ^ k1, p0 & mask]
        k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
    return c


def test_predicated_accesses_and_shuffles() -> None:
    data = RNG.integers(0, 256, 512).astype(np.uint8)
    inside = 19
    got = run("accesses", np.zeros(64 * 32, np.uint8), data, inside, threads=32)
    place = 0
    for size, count in ((1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (2, 8), (4, 4)):
        width = size * count
        want = data[: 32 * width].view(f"u{size}").reshape(32, count).copy()
        want[inside:] = 7
        plane = got[32 * place : 32 * (place + width)].view(f"u{size}").reshape(32, count)
        np.testing.assert_array_equal(plane, want)
        place += width
    lanes = np.arange(32)
    for size, mask, shift in ((1, 1, 0), (2, 4, 0), (4, 16, 0), (8, 31, 40)):
        plane = got[32 * place : 32 * (place + size)].view(f"u{size}")
        np.testing.assert_array_equal(plane, (lanes ^ mask).astype(f"u{size}") << shift)
        place += size


def test_atomics_checks_and_reservations() -> None:
    kinds = (np.float32, np.int32, np.int64, np.uint16, np.uint16, np.int32, np.uint64)
    zeros = [np.zeros(4, kind) for kind in kinds]
    f, i, wide, half, bf, status, prints = run_kernel("functions", "atomics", zeros, threads=256)
    total = 64 * (0 + 1 + 2 + 3)
    assert (f[0], i[0], wide[0], prints[0]) == (total, total, total << 33, total)
    assert list(half.view(np.float16)) == [0, total, 0, 0]
    # bf16 sums of ones, twos and threes stick where a unit becomes too coarse: only what stays exact is compared.
    assert list(bf.view(ml_dtypes.bfloat16)[[0, 2, 3]]) == [0, 64, 0]
    assert bf.view(ml_dtypes.bfloat16)[1] > 0
    assert status[0] == 5 + 3
