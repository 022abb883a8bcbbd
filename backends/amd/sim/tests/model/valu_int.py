"""Integer and bit VALU instructions, from the pseudo-code of the CDNA3/CDNA4 ISA, chapters VOP1 to VOP3."""

from __future__ import annotations

import numpy as np

from .machine import Spec

U32, U64, I64 = np.uint32, np.uint64, np.int64


def wide(value) -> np.ndarray:
    return value.astype(I64)


def low(value) -> np.ndarray:
    return (value & 0xFFFFFFFF).astype(U32)


def signed(value) -> np.ndarray:
    return value.view(np.int32)


def half(value) -> np.ndarray:
    return (value.astype(I64) & 0xFFFF).astype(U32)


def s24(value) -> np.ndarray:
    return ((wide(value) & 0xFFFFFF) ^ 0x800000) - 0x800000


def u24(value) -> np.ndarray:
    return wide(value) & 0xFFFFFF


def high_product(a, b) -> np.ndarray:
    """Upper 32 bits of a 64-bit product of Python-exact operands."""
    return low((a * b) >> 32)


def unsigned_high(a, b) -> np.ndarray:
    return ((a.astype(U64) * b.astype(U64)) >> U64(32)).astype(U32)


def first_one(value, *, from_msb: bool, width: int = 32) -> np.ndarray:
    """Index of the first set bit, -1 if there is none."""
    result = np.full(value.shape, -1, I64)
    for index in range(width) if not from_msb else range(width - 1, -1, -1):
        position = width - 1 - index if from_msb else index
        here = (value >> value.dtype.type(index)) & value.dtype.type(1) == 1
        result = np.where(here & (result < 0), position, result)
    return low(result)


def first_sign_change(value, width: int = 32) -> np.ndarray:
    """Index from the most significant bit of the first bit unlike the sign, -1 if all are alike."""
    sign = value.dtype.type(width - 1)
    flipped = np.where(value >> sign == 1, ~value, value)
    return first_one(flipped.astype(value.dtype), from_msb=True, width=width)


def popcount(value) -> np.ndarray:
    return sum(((value >> value.dtype.type(i)) & value.dtype.type(1)).astype(U32) for i in range(value.itemsize * 8))


def reverse(value, width: int = 32) -> np.ndarray:
    one, kind = value.dtype.type(1), value.dtype.type
    return sum((((value >> kind(i)) & one) << kind(width - 1 - i)) for i in range(width)).astype(value.dtype)


def bfe(value, offset, width, *, sign: bool) -> np.ndarray:
    offset, width = wide(offset) & 31, wide(width) & 31
    value = wide(np.asarray(value).astype(np.int32) if sign else value)  # S0.i32 shifts its sign in
    field = (value >> offset) & ((1 << width) - 1)
    top = np.where(width > 0, 1 << np.maximum(width - 1, 0), 0)
    return low((field ^ top) - top) if sign else low(field)


def byte(value, index: int) -> np.ndarray:
    return (wide(value) >> (8 * index)) & 0xFF


def sad_u8(a, b, c, *, masked: bool = False) -> np.ndarray:
    total = wide(c)
    for i in range(4):
        difference = np.abs(byte(a, i) - byte(b, i))
        total = total + (np.where(byte(b, i) == 0, 0, difference) if masked else difference)
    return low(total)


def sad_u16(a, b, c) -> np.ndarray:
    parts = (np.abs((wide(a) >> s & 0xFFFF) - (wide(b) >> s & 0xFFFF)) for s in (0, 16))
    return low(wide(c) + sum(parts))


def quad_sad(a, b, c, *, masked: bool):
    """Four sliding 4-byte differences, each added to 16 bits of c."""
    result = np.zeros(a.shape, U64)
    for i in range(4):
        window = ((a >> U64(8 * i)) & U64(0xFFFFFFFF)).astype(U32)
        lane = ((c >> U64(16 * i)) & U64(0xFFFF)).astype(U32)
        part = sad_u8(window, b, lane, masked=masked).astype(U64) & U64(0xFFFF)
        result |= part << U64(16 * i)
    return result


def perm(a, b, selector) -> np.ndarray:
    """Bytes 0-3 are of b, 4-7 of a; 8-11 are signs, 12 is zero, 13 and more are 0xff."""
    data = (a.astype(U64) << U64(32)) | b.astype(U64)
    result = np.zeros(a.shape, I64)
    for i in range(4):
        choice = byte(selector, i)
        picked = ((data >> (8 * np.minimum(choice, 7)).astype(U64)) & U64(0xFF)).astype(I64)
        sign_bit = np.select([choice == 8, choice == 9, choice == 10], [15, 31, 47], 63)
        sign = ((data >> sign_bit.astype(U64)) & U64(1)).astype(I64) * 0xFF
        value = np.where(choice >= 13, 0xFF, np.where(choice == 12, 0, np.where(choice >= 8, sign, picked)))
        result |= value << (8 * i)
    return low(result)


def align(a, b, shift) -> np.ndarray:
    return (((a.astype(U64) << U64(32)) | b.astype(U64)) >> shift.astype(U64)).astype(U32)


def lerp_u8(a, b, c) -> np.ndarray:
    return low(sum((((byte(a, i) + byte(b, i) + (byte(c, i) & 1)) >> 1) << (8 * i)) for i in range(4)))


def bitop3(text_bits: int):
    """The truth table's bit 4a + 2b + c says the result for those input bits."""

    def apply(a, b, c):
        result = np.zeros_like(a)
        for index in range(8):
            if text_bits >> index & 1:
                terms = (v if index >> s & 1 else ~v for v, s in ((a, 2), (b, 1), (c, 0)))
                x, y, z = terms
                result |= x & y & z
        return result

    return apply


def ternary(bits_wide: int):
    def run(context, a, b, c):
        table = int(context[1].modifiers.get("bitop3", "0"), 0)
        value = bitop3(table)(a.astype(U32), b.astype(U32), c.astype(U32))
        return value & U32(0xFFFF) if bits_wide == 16 else value

    return run


def carry(total) -> tuple[np.ndarray, np.ndarray]:
    return low(total), total >= 1 << 32


def borrow(total) -> tuple[np.ndarray, np.ndarray]:
    return low(total), total < 0


def mad64(a, b, c, *, sign: bool):
    """A 65-bit product sum: its low 64 bits and the carry or sign bit."""
    low64, top = np.zeros(a.shape, U64), np.zeros(a.shape, bool)
    for index in np.ndindex(a.shape):
        total = int(a[index]) * int(b[index]) + int(c[index])
        low64[index], top[index] = total & (2**64 - 1), bool(total >> 64 & 1)
    return low64, top


def ashr_pack(a, b, c, least: int, most: int):
    """Two saturated bytes, in half a register."""
    shift = wide(c) & 31
    parts = (np.clip(wide(signed(x)) >> shift, least, most) & 0xFF for x in (a, b))
    first, second = parts
    return low(first | second << 8)


def saturate_u8(value) -> np.ndarray:
    parts = ((wide(value) >> s & 0xFFFF ^ 0x8000) - 0x8000 for s in (0, 16))
    first, second = (np.clip(p, 0, 255) for p in parts)
    return low(first | second << 8)


def prng(value) -> np.ndarray:
    return (value << U32(1)) ^ np.where(value >> 31 == 1, U32(197), U32(0))


def dot(a, b, c, width: int, *, sign: bool):
    """Exact sum of products of `width`-bit fields plus c."""
    bias = 1 << (width - 1) if sign else 0
    mask = (1 << width) - 1
    fields = lambda x, i: ((wide(x) >> (i * width) & mask) ^ bias) - bias  # noqa: E731
    return wide(c) + sum(fields(a, i) * fields(b, i) for i in range(32 // width))


# A leading "=" marks an exact result: the machine wraps it, or saturates it when clamp is set (VOP3 fields).
U2, S2X, U3, S3X = "=u32: u32 u32", "=i32: i32 i32", "=u32: u32 u32 u32", "=i32: u32 u32 i32"
B2, B3 = "u32: u32 u32", "u32: u32 u32 u32"
I2, I3 = "i32: i32 i32", "i32: i32 i32 i32"
H2, H3 = "u16: u16 u16", "hu16: hu16 hu16 hu16"

VOP2 = {
    "v_add_u32": Spec(U2, lambda a, b: wide(a) + b),
    "v_sub_u32": Spec(U2, lambda a, b: wide(a) - b),
    "v_subrev_u32": Spec(U2, lambda a, b: wide(b) - a),
    "v_add_co_u32": Spec("u32 c: u32 u32", lambda a, b: carry(wide(a) + wide(b))),
    "v_sub_co_u32": Spec("u32 c: u32 u32", lambda a, b: borrow(wide(a) - wide(b))),
    "v_subrev_co_u32": Spec("u32 c: u32 u32", lambda a, b: borrow(wide(b) - wide(a))),
    "v_addc_co_u32": Spec("u32 c: u32 u32 c", lambda a, b, c: carry(wide(a) + wide(b) + c)),
    "v_subb_co_u32": Spec("u32 c: u32 u32 c", lambda a, b, c: borrow(wide(a) - wide(b) - c)),
    "v_subbrev_co_u32": Spec("u32 c: u32 u32 c", lambda a, b, c: borrow(wide(b) - wide(a) - c)),
    "v_mul_u32_u24": Spec(B2, lambda a, b: low(u24(a) * u24(b))),
    "v_mul_i32_i24": Spec(B2, lambda a, b: low(s24(a) * s24(b))),
    "v_mul_hi_u32_u24": Spec(B2, lambda a, b: high_product(u24(a), u24(b))),
    "v_mul_hi_i32_i24": Spec(B2, lambda a, b: high_product(s24(a), s24(b))),
    "v_min_u32": Spec(B2, np.minimum),
    "v_max_u32": Spec(B2, np.maximum),
    "v_min_i32": Spec(I2, np.minimum),
    "v_max_i32": Spec(I2, np.maximum),
    "v_and_b32": Spec(B2, lambda a, b: a & b),
    "v_or_b32": Spec(B2, lambda a, b: a | b),
    "v_xor_b32": Spec(B2, lambda a, b: a ^ b),
    "v_xnor_b32": Spec(B2, lambda a, b: ~(a ^ b)),
    "v_lshlrev_b32": Spec(B2, lambda a, b: b << (a & 31)),
    "v_lshrrev_b32": Spec(B2, lambda a, b: b >> (a & 31)),
    "v_ashrrev_i32": Spec(I2, lambda a, b: b >> (a & 31)),
    "v_add_u16": Spec("=u16: u16 u16", lambda a, b: wide(a) + b),
    "v_sub_u16": Spec("=u16: u16 u16", lambda a, b: wide(a) - b),
    "v_subrev_u16": Spec("=u16: u16 u16", lambda a, b: wide(b) - a),
    "v_mul_lo_u16": Spec(H2, lambda a, b: half(wide(a) * b)),
    "v_min_u16": Spec(H2, lambda a, b: half(np.minimum(a, b))),
    "v_max_u16": Spec(H2, lambda a, b: half(np.maximum(a, b))),
    "v_min_i16": Spec("i16: i16 i16", lambda a, b: half(np.minimum(a, b))),
    "v_max_i16": Spec("i16: i16 i16", lambda a, b: half(np.maximum(a, b))),
    "v_lshlrev_b16": Spec(H2, lambda a, b: half(wide(b) << (wide(a) & 15))),
    "v_lshrrev_b16": Spec(H2, lambda a, b: half(wide(b) >> (wide(a) & 15))),
    "v_ashrrev_i16": Spec("i16: i16 i16", lambda a, b: half(wide(b) >> (wide(a) & 15))),
    "v_dot4c_i32_i8": Spec("=i32: u32 u32 d.i32", lambda a, b, d: dot(a, b, d, 8, sign=True)),
    "v_dot2c_i32_i16": Spec("=i32: u32 u32 d.i32", lambda a, b, d: dot(a, b, d, 16, sign=True)),
    "v_dot8c_i32_i4": Spec("=i32: u32 u32 d.i32", lambda a, b, d: dot(a, b, d, 4, sign=True)),
    "v_cndmask_b32": Spec("u32: x32 x32 c", lambda a, b, c: np.where(c, b, a)),
}

VOP1 = {
    "v_mov_b32": Spec("u32: u32", lambda a: a),
    "v_mov_b64": Spec("u64: u64", lambda a: a),
    "v_not_b32": Spec("u32: u32", lambda a: ~a),
    "v_bfrev_b32": Spec("u32: u32", reverse),
    "v_ffbh_u32": Spec("u32: u32", lambda a: first_one(a, from_msb=True)),
    "v_ffbl_b32": Spec("u32: u32", lambda a: first_one(a, from_msb=False)),
    "v_ffbh_i32": Spec("u32: u32", first_sign_change),
    "v_sat_pk_u8_i16": Spec("u32: u32", saturate_u8),
    "v_prng_b32": Spec("u32: u32", prng),
    "v_accvgpr_mov_b32": Spec("u32: u32", lambda a: a),
}

VOP3 = {
    "v_add_i32": Spec(S2X, lambda a, b: wide(a) + b),
    "v_sub_i32": Spec(S2X, lambda a, b: wide(a) - b),
    "v_add_i16": Spec("=hi16: hi16 hi16", lambda a, b: wide(a) + b),
    "v_sub_i16": Spec("=hi16: hi16 hi16", lambda a, b: wide(a) - b),
    "v_mul_lo_u32": Spec(B2, lambda a, b: a * b),
    "v_mul_hi_u32": Spec(B2, unsigned_high),
    "v_mul_hi_i32": Spec(I2, lambda a, b: high_product(wide(a), wide(b))),
    "v_mad_u32_u24": Spec(U3, lambda a, b, c: u24(a) * u24(b) + c),
    "v_mad_i32_i24": Spec(S3X, lambda a, b, c: s24(a) * s24(b) + c),
    "v_mad_u32_u16": Spec("=u32: u16 u16 u32", lambda a, b, c: wide(a) * b + c),
    "v_mad_i32_i16": Spec("=i32: i16 i16 i32", lambda a, b, c: wide(a) * b + c),
    "v_mad_u16": Spec("=hu16: hu16 hu16 hu16", lambda a, b, c: wide(a) * b + c),
    "v_mad_i16": Spec("=hi16: hi16 hi16 hi16", lambda a, b, c: wide(a) * b + c),
    "v_mad_legacy_u16": Spec("=u16: u16 u16 u16", lambda a, b, c: wide(a) * b + c),
    "v_mad_legacy_i16": Spec("=i16: i16 i16 i16", lambda a, b, c: wide(a) * b + c),
    "v_mad_u64_u32": Spec("u64 c: u32 u32 u64", lambda a, b, c: mad64(a, b, c, sign=False)),
    "v_mad_i64_i32": Spec("u64 c: i32 i32 i64", lambda a, b, c: mad64(a, b, c, sign=True)),
    "v_lshl_add_u32": Spec(B3, lambda a, b, c: (a << (b & 31)) + c),
    "v_lshl_add_u64": Spec("u64: u64 u32 u64", lambda a, b, c: (a << (b & 7).astype(U64)) + c),
    "v_add_lshl_u32": Spec(B3, lambda a, b, c: (a + b) << (c & 31)),
    "v_lshl_or_b32": Spec(B3, lambda a, b, c: (a << (b & 31)) | c),
    "v_and_or_b32": Spec(B3, lambda a, b, c: a & b | c),
    "v_or3_b32": Spec(B3, lambda a, b, c: a | b | c),
    "v_add3_u32": Spec(B3, lambda a, b, c: a + b + c),
    "v_xad_u32": Spec(B3, lambda a, b, c: (a ^ b) + c),
    "v_bfe_u32": Spec(B3, lambda a, b, c: bfe(a, b, c, sign=False)),
    "v_bfe_i32": Spec(B3, lambda a, b, c: bfe(a, b, c, sign=True)),
    "v_bfi_b32": Spec(B3, lambda a, b, c: a & b | ~a & c),
    "v_bfm_b32": Spec(B2, lambda a, b: low(((1 << (wide(a) & 31)) - 1) << (wide(b) & 31))),
    "v_perm_b32": Spec(B3, perm),
    "v_alignbit_b32": Spec(B3, lambda a, b, c: align(a, b, c & 31)),
    "v_alignbyte_b32": Spec(B3, lambda a, b, c: align(a, b, 8 * (c & 3))),
    "v_lerp_u8": Spec(B3, lerp_u8),
    "v_sad_u8": Spec(B3, sad_u8),
    "v_sad_hi_u8": Spec(B3, lambda a, b, c: (sad_u8(a, b, 0 * c) << U32(16)) + c),
    "v_msad_u8": Spec(B3, lambda a, b, c: sad_u8(a, b, c, masked=True)),
    "v_sad_u16": Spec(B3, sad_u16),
    "v_sad_u32": Spec(B3, lambda a, b, c: low(np.abs(wide(a) - wide(b)) + c)),
    "v_qsad_pk_u16_u8": Spec("u64: u64 u32 u64", lambda a, b, c: quad_sad(a, b, c, masked=False)),
    "v_mqsad_pk_u16_u8": Spec("u64: u64 u32 u64", lambda a, b, c: quad_sad(a, b, c, masked=True)),
    "v_min3_u32": Spec(B3, lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    "v_max3_u32": Spec(B3, lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    "v_med3_u32": Spec(B3, lambda *x: np.sort(np.stack(x), axis=0)[1]),
    "v_min3_i32": Spec(I3, lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    "v_max3_i32": Spec(I3, lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    "v_med3_i32": Spec(I3, lambda *x: np.sort(np.stack(x), axis=0)[1]),
    "v_min3_u16": Spec(H3, lambda *x: half(np.min(np.stack(x), axis=0))),
    "v_max3_u16": Spec(H3, lambda *x: half(np.max(np.stack(x), axis=0))),
    "v_med3_u16": Spec(H3, lambda *x: half(np.sort(np.stack(x), axis=0)[1])),
    "v_min3_i16": Spec("hi16: hi16 hi16 hi16", lambda *x: half(np.min(np.stack(x), axis=0))),
    "v_max3_i16": Spec("hi16: hi16 hi16 hi16", lambda *x: half(np.max(np.stack(x), axis=0))),
    "v_med3_i16": Spec("hi16: hi16 hi16 hi16", lambda *x: half(np.sort(np.stack(x), axis=0)[1])),
    "v_lshlrev_b64": Spec("u64: u32 u64", lambda a, b: b << (a & 63).astype(U64)),
    "v_lshrrev_b64": Spec("u64: u32 u64", lambda a, b: b >> (a & 63).astype(U64)),
    "v_ashrrev_i64": Spec("u64: u32 i64", lambda a, b: (b >> (a & 63).astype(I64)).view(U64)),
    "v_bcnt_u32_b32": Spec(B2, lambda a, b: popcount(a) + b),
    "v_bitop3_b32": Spec("u32: machine u32 u32 u32", ternary(32)),
    "v_bitop3_b16": Spec("hu16: machine hu16 hu16 hu16", ternary(16)),
    "v_ashr_pk_i8_i32": Spec("hu16: u32 u32 u32", lambda a, b, c: ashr_pack(a, b, c, -128, 127)),
    "v_ashr_pk_u8_i32": Spec("hu16: u32 u32 u32", lambda a, b, c: ashr_pack(a, b, c, 0, 255)),
    "v_dot4_i32_i8": Spec(S3X, lambda a, b, c: dot(a, b, c, 8, sign=True)),
    "v_dot4_u32_u8": Spec(U3, lambda a, b, c: dot(a, b, c, 8, sign=False)),
    "v_dot8_i32_i4": Spec(S3X, lambda a, b, c: dot(a, b, c, 4, sign=True)),
    "v_dot8_u32_u4": Spec(U3, lambda a, b, c: dot(a, b, c, 4, sign=False)),
    "v_dot2_i32_i16": Spec(S3X, lambda a, b, c: dot(a, b, c, 16, sign=True)),
    "v_dot2_u32_u16": Spec(U3, lambda a, b, c: dot(a, b, c, 16, sign=False)),
}

TABLE = VOP1 | VOP2 | VOP3
