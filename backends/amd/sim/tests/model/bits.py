"""Bit patterns as exact values and back: formats, rounding modes, denormal control, fused multiply-add.

Values of 32 bits or fewer are held as float64 "rounded to odd": 53 bits with a sticky last bit keep
every later rounding to 24 bits or fewer exact (Boldo & Melquiond, "Emulation of FMA and correctly
rounded sums", 2008).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

RNE, UP, DOWN, ZERO = range(4)  # MODE.fp_round, ISA table "MODE register fields"


@dataclass(frozen=True)
class Format:
    """A binary float format: precision with the hidden bit, and least and greatest normal exponents."""

    width: int
    precision: int
    emin: int
    emax: int

    @property
    def largest(self) -> float:
        return math.ldexp(2 - 2.0 ** (1 - self.precision), self.emax)


F16, BF16 = Format(16, 11, -14, 15), Format(16, 8, -126, 127)
F32, F64 = Format(32, 24, -126, 127), Format(64, 53, -1022, 1023)
E4M3, E5M2 = Format(8, 4, -6, 8), Format(8, 3, -14, 15)
E2M3, E3M2, E2M1 = Format(6, 4, 0, 2), Format(6, 3, -2, 4), Format(4, 2, 0, 2)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def decode(bits: np.ndarray, fmt: Format) -> np.ndarray:
    """The values of IEEE-style bit patterns, as float64."""
    if fmt is F32:
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    if fmt is F16:
        return bits.astype(np.uint16).view(np.float16).astype(np.float64)
    if fmt is BF16:
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.astype(np.uint64).view(np.float64)


def encode(value: np.ndarray, fmt: Format) -> np.ndarray:
    """Bit patterns of values that the format holds exactly; NaN becomes quiet and keeps its top bits."""
    if fmt is F16:
        half = value.astype(np.float16)
        return np.where(np.isnan(half), half.view(np.uint16) | np.uint16(0x200), half.view(np.uint16))
    if fmt is BF16:
        return (value.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if fmt is F32:
        return value.astype(np.float32).view(np.uint32)
    return value.view(np.uint64)


def round_to(value: np.ndarray, fmt: Format, mode: int = RNE) -> np.ndarray:
    """Round to the format's precision, with gradual underflow and the mode's overflow result."""
    if fmt is F64:
        return value
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(value)[1] - 1, fmt.emin) - (fmt.precision - 1)
        scaled = np.ldexp(value, -exponent)
        whole = (np.rint, np.ceil, np.floor, np.trunc)[mode](scaled)
        rounded = np.ldexp(whole, exponent)
        rounded = np.where(np.isfinite(value), np.copysign(rounded, value), value)
    return _overflow(value, rounded, fmt, mode)


def _overflow(value: np.ndarray, rounded: np.ndarray, fmt: Format, mode: int) -> np.ndarray:
    over = np.isfinite(value) & (np.abs(rounded) > fmt.largest)
    inward = (mode == ZERO) | ((mode == UP) & (value < 0)) | ((mode == DOWN) & (value > 0))
    limit = np.where(inward, fmt.largest, np.inf)
    return np.where(over, np.copysign(limit, value), rounded)


def flushed_bits(pattern: np.ndarray, fmt: Format) -> np.ndarray:
    """Denormal patterns become zeros of their sign; others keep every bit."""
    sign = pattern.dtype.type(1 << (fmt.width - 1))
    tiny = (pattern & ~sign) < pattern.dtype.type(1 << (fmt.precision - 1))
    return np.where(tiny, pattern & sign, pattern)


def flush(value: np.ndarray, fmt: Format) -> np.ndarray:
    """Denormals become zeros of their sign."""
    tiny = np.abs(value) < math.ldexp(1.0, fmt.emin)
    return np.where(tiny, np.copysign(0.0, value), value)


def add_odd(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b rounded to odd: the error of the nearest sum decides the last bit (Knuth's two-sum)."""
    with np.errstate(all="ignore"):
        total = a + b
        part = total - a
        error = (a - (total - part)) + (b - part)
        even = (total.view(np.uint64) & np.uint64(1)) == 0
        toward = np.where((error > 0) == (total > 0), np.copysign(np.inf, total), 0.0)
        fix = np.isfinite(total) & (error != 0) & even
        return np.where(fix, np.nextafter(total, toward), total)


def fma_odd(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c for operands of at most 24 bits: the product is exact in float64."""
    with np.errstate(all="ignore"):
        return add_odd(a * b, c)


def _fma64(a: float, b: float, c: float, power: int = 0) -> float:
    if math.isfinite(a) and math.isfinite(b) and not math.isfinite(c):
        return c
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    exact = (Fraction(a) * Fraction(b) + Fraction(c)) * Fraction(2) ** int(power)
    if exact == 0:
        return a * b + c  # keeps the sign rules of zero
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def fma64(a: np.ndarray, b: np.ndarray, c: np.ndarray, power: np.ndarray | int = 0) -> np.ndarray:
    """Correctly rounded (a * b + c) * 2^power, by exact rationals (Python's int / int rounds correctly)."""
    with np.errstate(all="ignore"):
        return np.vectorize(_fma64, otypes=[np.float64])(*np.broadcast_arrays(a, b, c, power))


def small_table(fmt: Format, bias: int, fnuz: bool = False) -> np.ndarray:
    """Every value of a 4, 6 or 8-bit format, indexed by its code."""
    return np.array([_small_value(code, fmt, bias, fnuz) for code in range(1 << fmt.width)])


def _small_value(code: int, fmt: Format, bias: int, fnuz: bool) -> float:
    fraction_bits = fmt.precision - 1
    exponent_bits = fmt.width - fmt.precision
    sign = -1.0 if code >> (fmt.width - 1) else 1.0
    exponent = (code >> fraction_bits) & ((1 << exponent_bits) - 1)
    fraction = code & ((1 << fraction_bits) - 1)
    if fnuz and code == 0x80:
        return math.nan
    if not fnuz and fmt is E4M3 and code & 0x7F == 0x7F:
        return math.nan
    if not fnuz and fmt is E5M2 and exponent == 31:
        return math.nan if fraction else sign * math.inf
    if exponent == 0:
        return sign * math.ldexp(fraction, 1 - bias - fraction_bits)
    return sign * math.ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits)


def small_formats(target: str) -> dict[str, np.ndarray]:
    """Code tables of the target: CDNA3 has FNUZ 8-bit formats, CDNA4 the OCP ones (ISA table 30)."""
    fnuz = target == "gfx942"
    tables = {
        "fp8": small_table(E4M3, 8 if fnuz else 7, fnuz),
        "bf8": small_table(E5M2, 16 if fnuz else 15, fnuz),
    }
    if not fnuz:
        tables |= {"fp6": small_table(E2M3, 1), "bf6": small_table(E3M2, 3), "fp4": small_table(E2M1, 1)}
    return tables
