"""Conversions between number formats, from the CDNA3/CDNA4 ISA (VOP1, VOP3 and tables 30 to 32)."""

from __future__ import annotations

import numpy as np

from . import bits
from .bits import BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32
from .machine import Spec
from .valu_int import prng

RNE = frozenset({"rne"})
OFFSET_TABLE = np.array([0, *(i / 16 for i in range(1, 8)), *(-i / 16 for i in range(8, 0, -1))])


def to_int(width: int, signed: bool, rounding=np.trunc):
    """Saturating conversion; NaN becomes 0."""
    least, most = (-(2.0 ** (width - 1)), 2.0 ** (width - 1) - 1) if signed else (0.0, 2.0**width - 1)
    mask = (1 << width) - 1

    def run(value):
        whole = np.clip(rounding(np.where(np.isnan(value), 0.0, value)), least, most)
        return (whole.astype(np.int64) & mask).astype(np.uint32)

    return run


def number(value):
    return value.astype(np.float64)


def normalised(signed: bool):
    """[-1, 1] or [0, 1] to a 16-bit integer, to nearest even."""
    scale, least = (32767.0, -1.0) if signed else (65535.0, 0.0)

    def run(value):
        clean = np.clip(np.where(np.isnan(value), 0.0, value), least, 1.0)
        return (np.rint(clean * scale).astype(np.int64) & 0xFFFF).astype(np.uint32)

    return run


def pack(first, second):
    return (first.astype(np.uint32) & 0xFFFF) | (second.astype(np.uint32) << 16)


def both(fn):
    return lambda a, b: pack(fn(a), fn(b))


def to_half(fmt, mode=bits.RNE):
    return lambda value: bits.encode(bits.round_to(value, fmt, mode), fmt)


def saturate16(signed: bool):
    least, most = (-32768, 32767) if signed else (0, 65535)
    return lambda value: (np.clip(value.astype(np.int64), least, most) & 0xFFFF).astype(np.uint32)


def put_byte(value, position, old):
    """v_cvt_pk_u8_f32: the float, saturated to a byte, replaces one byte of the third operand."""
    shift = (position & 3) * 8
    byte = to_int(8, False)(value)
    return (old & ~(np.uint32(0xFF) << shift)) | (byte << shift)


SMALL_FORMATS = {"fp8": E4M3, "bf8": E5M2, "fp6": E2M3, "bf6": E3M2, "fp4": E2M1}


class Small:
    """One 4, 6 or 8-bit format on a target: its code table and its overflow rule."""

    def __init__(self, target: str, name: str) -> None:
        self.name, self.format = name, SMALL_FORMATS[name]
        self.values = bits.small_formats(target)[name]
        self.fnuz = target == "gfx942"
        self.infinite = name == "bf8" and not self.fnuz

    @property
    def largest(self) -> float:
        return float(np.max(self.values[np.isfinite(self.values)]))

    @property
    def minimum_exponent(self) -> int:
        """Exponent of the least normal number."""
        smallest = np.min(self.values[self.values > 0])
        return int(np.frexp(smallest)[1]) - 1 + self.format.precision - 1

    def decode(self, code):
        return self.values[code.astype(np.int64) & (len(self.values) - 1)]

    def code_of(self, rounded, negative):
        """Codes of values that the format holds exactly."""
        magnitude = np.abs(rounded)
        positive = self.values[: len(self.values) // 2]
        finite = np.flatnonzero(np.isfinite(positive))
        index = finite[np.searchsorted(positive[finite], np.where(np.isfinite(magnitude), magnitude, 0))]
        zero_sign = negative & ~(self.fnuz & (magnitude == 0) & (self.name in ("fp8", "bf8")))
        return (index | (zero_sign.astype(np.int64) << (self.format.width - 1))).astype(np.uint32)

    def special(self, kind: str, negative):
        """The codes of NaN and of overflow (ISA table "FP16_OVFL rule"; FNUZ has one NaN, 0x80)."""
        if self.fnuz:
            return np.where(negative, 0x80, 0x80).astype(np.uint32)
        half = 1 << (self.format.width - 1)
        if kind == "overflow" and self.infinite:
            return np.where(negative, 0xFC, 0x7C).astype(np.uint32)
        if self.name not in ("fp8", "bf8"):
            return np.where(negative, 2 * half - 1, half - 1).astype(np.uint32)  # no NaN: the largest
        quiet = 0x7E if kind == "nan" and self.name == "bf8" else 0x7F
        return np.where(negative, quiet | 0x80, quiet).astype(np.uint32)

    def encode(self, value, saturate: bool):
        """Nearest even; overflow saturates where asked or where the format has nothing else."""
        fmt = bits.Format(self.format.width, self.format.precision, self.minimum_exponent, 1000)
        rounded = bits.round_to(value, fmt)
        return self.finish(value, rounded, saturate)

    def finish(self, value, rounded, saturate: bool):
        negative = np.signbit(value)
        over = np.abs(rounded) > self.largest
        clipped = np.clip(rounded, -self.largest, self.largest)
        code = self.code_of(clipped, negative)
        if not (saturate or self.name not in ("fp8", "bf8")):
            code = np.where(over, self.special("overflow", negative), code)
        return np.where(np.isnan(value), self.special("nan", negative), code).astype(np.uint32)


TARGET_FREE = {
    "v_cvt_f32_i32": Spec("f32: i32", number),
    "v_cvt_f32_u32": Spec("f32: u32", number),
    "v_cvt_i32_f32": Spec("u32: f32", to_int(32, True)),
    "v_cvt_u32_f32": Spec("u32: f32", to_int(32, False)),
    "v_cvt_rpi_i32_f32": Spec("u32: f32", to_int(32, True, lambda x: np.floor(x + 0.5))),
    "v_cvt_flr_i32_f32": Spec("u32: f32", to_int(32, True, np.floor)),
    "v_cvt_f16_f32": Spec("f16: f32", lambda x: x),
    "v_cvt_f32_f16": Spec("f32: f16", lambda x: x),
    "v_cvt_f32_bf16": Spec("f32: bf16", lambda x: x),
    "v_cvt_f64_i32": Spec("f64: i32", number),
    "v_cvt_f64_u32": Spec("f64: u32", number),
    "v_cvt_i32_f64": Spec("u32: f64", to_int(32, True)),
    "v_cvt_u32_f64": Spec("u32: f64", to_int(32, False)),
    "v_cvt_f32_f64": Spec("f32: f64", lambda x: x),
    "v_cvt_f64_f32": Spec("f64: f32", lambda x: x),
    "v_cvt_f16_u16": Spec("f16: u16", number),
    "v_cvt_f16_i16": Spec("f16: i16", number),
    "v_cvt_u16_f16": Spec("u16: f16", to_int(16, False)),
    "v_cvt_i16_f16": Spec("u16: f16", to_int(16, True)),
    "v_cvt_norm_i16_f16": Spec("u16: f16", normalised(True)),
    "v_cvt_norm_u16_f16": Spec("u16: f16", normalised(False)),
    "v_cvt_off_f32_i4": Spec("f32: u32", lambda a: OFFSET_TABLE[(a & 15).astype(int)]),
    "v_cvt_pknorm_i16_f32": Spec("u32: f32 f32", both(normalised(True))),
    "v_cvt_pknorm_u16_f32": Spec("u32: f32 f32", both(normalised(False))),
    "v_cvt_pknorm_i16_f16": Spec("u32: h16 h16", both(normalised(True))),
    "v_cvt_pknorm_u16_f16": Spec("u32: h16 h16", both(normalised(False))),
    "v_cvt_pkrtz_f16_f32": Spec("u32: f32 f32", both(to_half(F16, bits.ZERO))),
    "v_cvt_pk_u16_u32": Spec("u32: u32 u32", both(saturate16(False))),
    "v_cvt_pk_i16_i32": Spec("u32: i32 i32", both(saturate16(True))),
    "v_cvt_pk_u8_f32": Spec("u32: f32 u32 u32", put_byte),
    "v_cvt_pk_f16_f32": Spec("u32: f32 f32", both(to_half(F16))),
    "v_cvt_pk_bf16_f32": Spec("u32: f32 f32", both(to_half(BF16))),
    "v_pack_b32_f16": Spec("u32: h16 h16", both(to_half(F16))),
    **{f"v_cvt_f32_ubyte{n}": Spec("f32: u32", lambda a, n=n: number((a >> (8 * n)) & 0xFF)) for n in range(4)},
}


def stochastic(value, random, fmt, keep_bits: int):
    """Add random bits below the kept mantissa, then truncate (ISA 7.3)."""
    pattern = bits.encode(value, F32).astype(np.int64)
    dropped = 23 - keep_bits
    bumped = pattern + (random.astype(np.int64) >> (32 - dropped))
    return bits.decode(bumped & 0xFFFFFFFF, F32), dropped


def fp8_table(target: str) -> dict[str, Spec]:
    """Conversions from and to 8-bit floats without scale: both targets."""
    table = {}
    for name in ("fp8", "bf8"):
        small = Small(target, name)
        table[f"v_cvt_f32_{name}"] = Spec("f32: u32", lambda a, s=small: s.decode(a & 0xFF))
    return table


def target_table(target: str) -> dict[str, Spec]:
    return TARGET_FREE | fp8_table(target)


__all__ = ["E4M3", "Small", "prng", "stochastic", "target_table"]
