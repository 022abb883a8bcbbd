"""Floating-point VALU arithmetic, from the pseudo-code of the CDNA3/CDNA4 ISA, chapters VOP1 to VOP3."""

from __future__ import annotations

import numpy as np

from .bits import F16, F32, F64, Format, add_odd, decode, encode, fma64, fma_odd
from .machine import Spec
from .valu_int import low

RAW = frozenset({"raw"})


def mul(a, b):
    with np.errstate(all="ignore"):
        return a * b


def div_free(fn):
    """Silence NumPy's warnings for the infinities and NaNs that the ISA defines."""

    def quiet(*args):
        with np.errstate(all="ignore"):
            return fn(*args)

    return quiet


def is_nan(pattern, fmt: Format):
    return np.isnan(decode(pattern, fmt))


def quiet_bit(fmt: Format) -> int:
    return 1 << (fmt.precision - 2)


def _is_signalling(pattern, fmt: Format):
    return is_nan(pattern, fmt) & ((pattern & pattern.dtype.type(quiet_bit(fmt))) == 0)


def pick(fmt: Format, largest: bool):
    """v_min / v_max of bit patterns: signalling NaN quieted, other NaN loses, -0 below +0 (IEEE mode on)."""

    def choose(a, b):
        quiet = a.dtype.type(quiet_bit(fmt))
        x, y = decode(a, fmt), decode(b, fmt)
        sign = a.dtype.type(1 << (fmt.width - 1))
        below = (x < y) | ((x == y) & ((a & sign) != 0) & ((b & sign) == 0))
        above = (x > y) | ((x == y) & ((a & sign) == 0))
        first = np.where(np.isnan(x), False, np.isnan(y) | (above if largest else below))
        result = np.where(first, a, b)
        result = np.where(_is_signalling(b, fmt), b | quiet, result)
        return np.where(_is_signalling(a, fmt), a | quiet, result)

    return choose


def three(choose):
    return lambda a, b, c: choose(choose(a, b), c)


def median(fmt: Format):
    least, most = pick(fmt, False), pick(fmt, True)

    def choose(a, b, c):
        nan = is_nan(a, fmt) | is_nan(b, fmt) | is_nan(c, fmt)
        top = decode(most(most(a, b), c), fmt)
        inner = np.where(top == decode(a, fmt), most(b, c), np.where(top == decode(b, fmt), most(a, c), most(a, b)))
        return np.where(nan, least(least(a, b), c), inner)

    return choose


def propagating(fmt: Format, largest: bool):
    """IEEE 754-2019 minimum / maximum: any NaN operand gives NaN, -0 is below +0."""
    choose = pick(fmt, largest)

    def run(a, b):
        nan = is_nan(a, fmt) | is_nan(b, fmt)
        quiet_nan = a.dtype.type(encode(np.array([np.nan]), fmt)[0])
        return np.where(nan, quiet_nan, choose(a, b))

    return run


def fract(fmt: Format):
    """x - floor(x), kept below one."""
    below_one = 1 - 2.0**-fmt.precision
    return lambda value: np.minimum(value - np.floor(value), below_one)


def mantissa(value):
    return np.where(np.isfinite(value), np.frexp(value)[0], value)


def exponent(value):
    finite = np.isfinite(value)
    return np.where(finite, np.frexp(np.where(finite, value, 0.0))[1], 0).astype(np.int64)


def ldexp(value, power):
    """Two exact steps: float64 has room for any f32 or f16 scaled by a clamped power."""
    return np.ldexp(value, np.clip(power.astype(np.int64), -400, 400))


def ldexp64(value, power):
    return np.ldexp(value, np.clip(power.astype(np.int64), -4000, 4000))


def legacy_mul(a, b):
    return np.where((a == 0) | (b == 0), 0.0, mul(a, b))


def cube(part: int):
    def run(x, y, z):
        ax, ay, az = np.abs(x), np.abs(y), np.abs(z)
        z_major, y_major = (az >= ax) & (az >= ay), ay >= ax
        choices = (
            (np.where(z < 0, 5.0, 4.0), np.where(y < 0, 3.0, 2.0), np.where(x < 0, 1.0, 0.0)),
            (np.where(z < 0, -x, x), x, np.where(x < 0, z, -z)),
            (-y, np.where(y < 0, -z, z), -y),
            (2 * z, 2 * y, 2 * x),
        )[part]
        return np.where(z_major, choices[0], np.where(y_major, choices[1], choices[2]))

    return run


def div_fmas(power: int, fma):
    """Undo v_div_scale's 2^power, up or down by the size of the addend (RDNA3 ISA; CDNA's text has a slip)."""

    def run(a, b, c, vcc):
        with np.errstate(all="ignore"):
            large = np.frexp(c)[1] - 1 > 0
            scale = np.where(large, power, -power)
            scaled = fma64(a, b, c, scale) if fma is fma64 else np.ldexp(fma(a, b, c), scale)
        return np.where(vcc, scaled, fma(a, b, c))

    return run


def div_fixup(fmt: Format):
    """Special cases of a quotient b/c... as the ISA orders them: s1 the denominator, s2 the numerator."""

    def run(quotient, denominator, numerator):
        d, n = denominator, numerator
        sign = np.signbit(d) ^ np.signbit(n)
        signed = lambda value: np.where(sign, -value, value)  # noqa: E731
        gap = exponent(n) - exponent(d)
        far = gap < -(150 if fmt is F32 else 1075)
        least = 2.0 ** (fmt.emin - fmt.precision + 1)
        conditions = [
            np.isnan(n) | np.isnan(d) | ((d == 0) & (n == 0)) | (np.isinf(d) & np.isinf(n)),
            (d == 0) | np.isinf(n),
            np.isinf(d) | (n == 0),
        ]
        plain = signed(np.abs(quotient))
        choices = [np.nan, signed(np.full(d.shape, np.inf)), signed(np.zeros(d.shape))]
        if fmt is not F16:
            conditions.append(far)
            choices.append(signed(np.full(d.shape, least / 2 if fmt is F32 else 0.0)))
        return np.select(conditions, choices, plain)

    return run


F32_2, F32_3 = "f32: f32 f32", "f32: f32 f32 f32"


def floats(kind: str, suffix: str, fmt: Format, fma) -> dict[str, Spec]:
    """The arithmetic that exists in every width."""
    two, raw = f"{kind}: {kind} {kind}", f"m{fmt.width}"
    unary = f"{kind}: {kind}"
    table = {
        "v_add": Spec(two, add_odd if fmt is not F64 else np.add),
        "v_mul": Spec(two, mul),
        "v_max": Spec(f"u{fmt.width}: {raw} {raw}", pick(fmt, True), RAW),
        "v_min": Spec(f"u{fmt.width}: {raw} {raw}", pick(fmt, False), RAW),
        "v_floor": Spec(unary, np.floor),
        "v_ceil": Spec(unary, np.ceil),
        "v_trunc": Spec(unary, np.trunc),
        "v_rndne": Spec(unary, np.rint),
        "v_fract": Spec(unary, div_free(fract(fmt))),
        "v_frexp_mant": Spec(unary, mantissa),
    }
    if fmt is not F64:
        table["v_sub"] = Spec(two, lambda a, b: add_odd(a, -b))
        table["v_subrev"] = Spec(two, lambda a, b: add_odd(b, -a))
    return {f"{name}_{suffix}": spec for name, spec in table.items()}


TABLE = (
    floats("f32", "f32", F32, fma_odd)
    | floats("f16", "f16", F16, fma_odd)
    | floats("f64", "f64", F64, fma64)
    | {
        "v_fma_f32": Spec(F32_3, fma_odd),
        "v_fma_f64": Spec("f64: f64 f64 f64", fma64),
        "v_fma_f16": Spec("h16: h16 h16 h16", fma_odd),
        "v_fmac_f32": Spec("f32: f32 f32 d.f32", fma_odd),
        "v_fmac_f64": Spec("f64: f64 f64 d.f64", fma64),
        "v_mac_f16": Spec("f16: f16 f16 d.f16", fma_odd),
        "v_mad_f16": Spec("h16: h16 h16 h16", fma_odd),
        "v_fma_legacy_f16": Spec("f16: f16 f16 f16", fma_odd),
        "v_mad_legacy_f16": Spec("f16: f16 f16 f16", fma_odd),
        "v_madmk_f16": Spec("f16: f16 f16 f16", fma_odd),
        "v_madak_f16": Spec("f16: f16 f16 f16", fma_odd),
        "v_max3_f16": Spec("hu16: mh16 mh16 mh16", three(pick(F16, True)), RAW),
        "v_min3_f16": Spec("hu16: mh16 mh16 mh16", three(pick(F16, False)), RAW),
        "v_med3_f16": Spec("hu16: mh16 mh16 mh16", median(F16), RAW),
        "v_fmamk_f32": Spec(F32_3, fma_odd),
        "v_fmaak_f32": Spec(F32_3, fma_odd),
        "v_mul_legacy_f32": Spec(F32_2, legacy_mul),
        "v_max3_f32": Spec("u32: m32 m32 m32", three(pick(F32, True)), RAW),
        "v_min3_f32": Spec("u32: m32 m32 m32", three(pick(F32, False)), RAW),
        "v_med3_f32": Spec("u32: m32 m32 m32", median(F32), RAW),
        "v_minimum3_f32": Spec("u32: m32 m32 m32", three(propagating(F32, False)), RAW),
        "v_maximum3_f32": Spec("u32: m32 m32 m32", three(propagating(F32, True)), RAW),
        "v_ldexp_f32": Spec("f32: f32 i32", ldexp),
        "v_ldexp_f16": Spec("f16: f16 i16", ldexp),
        "v_ldexp_f64": Spec("f64: f64 i32", ldexp64),
        "v_frexp_exp_i32_f32": Spec("u32: f32", lambda x: low(exponent(x))),
        "v_frexp_exp_i32_f64": Spec("u32: f64", lambda x: low(exponent(x))),
        "v_frexp_exp_i16_f16": Spec("u16: f16", lambda x: low(exponent(x) & 0xFFFF)),
        "v_cubeid_f32": Spec(F32_3, cube(0)),
        "v_cubesc_f32": Spec(F32_3, cube(1)),
        "v_cubetc_f32": Spec(F32_3, cube(2)),
        "v_cubema_f32": Spec(F32_3, cube(3)),
        "v_div_fmas_f32": Spec("f32: f32 f32 f32 vcc", div_fmas(64, fma_odd)),
        "v_div_fmas_f64": Spec("f64: f64 f64 f64 vcc", div_fmas(128, fma64)),
        "v_div_fixup_f32": Spec(F32_3, div_fixup(F32)),
        "v_div_fixup_f64": Spec("f64: f64 f64 f64", div_fixup(F64)),
        "v_div_fixup_f16": Spec("h16: h16 h16 h16", div_fixup(F16)),
        "v_div_fixup_legacy_f16": Spec("f16: f16 f16 f16", div_fixup(F16)),
    }
)

# Functions that the hardware approximates: the exact value and the accuracy the ISA states, in ulp.
APPROXIMATE = {
    "v_exp_f32": (np.exp2, 1.0),
    "v_log_f32": (np.log2, 1.0),
    "v_rcp_f32": (lambda x: 1 / x, 1.0),
    "v_rcp_iflag_f32": (lambda x: 1 / x, 1.0),
    "v_rsq_f32": (lambda x: 1 / np.sqrt(x), 1.0),
    "v_sqrt_f32": (np.sqrt, 1.0),
    "v_sin_f32": (lambda x: np.sin(2 * np.pi * x), None),
    "v_cos_f32": (lambda x: np.cos(2 * np.pi * x), None),
    "v_exp_legacy_f32": (np.exp2, 1.0),
    "v_log_legacy_f32": (np.log2, 1.0),
    "v_exp_f16": (np.exp2, 0.51),
    "v_log_f16": (np.log2, 0.51),
    "v_rcp_f16": (lambda x: 1 / x, 0.51),
    "v_rsq_f16": (lambda x: 1 / np.sqrt(x), 0.51),
    "v_sqrt_f16": (np.sqrt, 0.51),
    "v_sin_f16": (lambda x: np.sin(2 * np.pi * x), None),
    "v_cos_f16": (lambda x: np.cos(2 * np.pi * x), None),
    "v_rcp_f64": (lambda x: 1 / x, 2.0**29),
    "v_rsq_f64": (lambda x: 1 / np.sqrt(x), 2.0**29),
    "v_sqrt_f64": (np.sqrt, 2.0**29),
}
