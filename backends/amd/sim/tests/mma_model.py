"""The published matrix-core sums (MMA-Sim, arXiv 2511.10909) in integers, written apart from the simulator.

Every value is an integer significand and the exponent of its last bit; nothing here uses floating-point rounding
except the IEEE special-value rule, which the paper states in float64 terms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Format:
    """A binary format: `special` is ieee, fn, fnuz or none."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    special: str


FORMATS = {
    "f32": Format(8, 23, 127, "ieee"),
    "xf32": Format(8, 23, 127, "ieee"),
    "f16": Format(5, 10, 15, "ieee"),
    "bf16": Format(8, 7, 127, "ieee"),
    "fp8_ocp": Format(4, 3, 7, "fn"),
    "bf8_ocp": Format(5, 2, 15, "ieee"),
    "fp8_fnuz": Format(4, 3, 8, "fnuz"),
    "bf8_fnuz": Format(5, 2, 16, "fnuz"),
    "fp6": Format(2, 3, 1, "none"),
    "bf6": Format(3, 2, 3, "none"),
    "fp4": Format(2, 1, 1, "none"),
}
GROUPS = {"f16": 8, "bf16": 8, "xf32": 4}  # everything else: 16, even and odd products apart
KEPT = 24  # fractional bits of an aligned product
FAR = -(10**6)  # exponent of a factor that is zero: it takes no part in the alignment
PUBLISHED_ZERO = -126  # what MMA-Sim gives it instead, for every format


def split(name: str, codes: np.ndarray, zero: int = FAR) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Signed significand (with `mantissa_bits` fraction bits), exponent, float64 value of each code."""
    fmt = FORMATS[name]
    codes = codes.astype(np.int64)
    if name == "xf32":
        codes = codes >> 13 << 13
    fraction = codes & ((1 << fmt.mantissa_bits) - 1)
    field = codes >> fmt.mantissa_bits & ((1 << fmt.exponent_bits) - 1)
    negative = codes >> (fmt.mantissa_bits + fmt.exponent_bits) & 1
    significand = np.where(field == 0, fraction, fraction | 1 << fmt.mantissa_bits)
    exponent = np.where(field == 0, 1, field) - fmt.bias
    value = np.ldexp(significand.astype(np.float64), exponent - fmt.mantissa_bits)
    top = (1 << fmt.exponent_bits) - 1
    if fmt.special == "ieee":
        value = np.where(field == top, np.where(fraction == 0, np.inf, np.nan), value)
    elif fmt.special == "fn":
        value = np.where((field == top) & (fraction == (1 << fmt.mantissa_bits) - 1), np.nan, value)
    elif fmt.special == "fnuz":
        value = np.where(codes == 1 << (fmt.mantissa_bits + fmt.exponent_bits), np.nan, value)
    sign = np.where(negative == 1, -1, 1)
    return sign * significand, np.where(significand == 0, zero, exponent), sign * value


def _shift_down(x: np.ndarray, by: np.ndarray) -> np.ndarray:
    return x >> np.minimum(by, 62)


def _truncated_sum(p: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Products p (KEPT fraction bits) of exponents e aligned to the largest and added, along the last axis."""
    top = e.max(axis=-1)
    aligned = np.sign(p) * _shift_down(np.abs(p), top[..., None] - e)
    return aligned.sum(axis=-1), top


def round_to_f32(total: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Bits of total * 2^exponent to nearest even; |total| < 2^62."""
    magnitude = np.abs(total)
    length = np.zeros_like(magnitude)
    for bit in (32, 16, 8, 4, 2, 1):
        more = magnitude >> (length + bit) > 0
        length = np.where(more, length + bit, length)
    top = np.maximum(length + exponent, -126)
    drop = np.clip(top - 23 - exponent, -40, 62)
    kept = np.where(drop > 0, magnitude >> np.maximum(drop, 0), magnitude << np.maximum(-drop, 0))
    rest = np.where(drop > 0, magnitude & ((np.int64(1) << np.maximum(drop, 0)) - 1), 0)
    half = np.where(drop > 0, np.int64(1) << np.maximum(drop - 1, 0), 1)
    kept += (rest > half) | ((rest == half) & (kept & 1 == 1) & (drop > 0))
    code = np.minimum(kept + (top + 126 << 23), 0x7F800000)
    code = np.where(magnitude == 0, 0, code)
    return (code | np.where(total < 0, 1 << 31, 0)).astype(np.uint32)


def _floats(bits: np.ndarray) -> np.ndarray:
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def _add_group(p, e, values, c_bits, even_odd):
    if even_odd:
        s0, e0 = _truncated_sum(p[..., 0::2], e[..., 0::2])
        s1, e1 = _truncated_sum(p[..., 1::2], e[..., 1::2])
        top = np.maximum(e0, e1)
        s = _shift_down(s0, top - e0) + _shift_down(s1, top - e1)
    else:
        s, top = _truncated_sum(p, e)
    c, ec, _ = split("f32", c_bits, zero=-126)
    both = np.maximum(top, ec)
    behind = both - top
    s31 = np.where(behind < 7, s << np.clip(7 - behind, 0, 7), _shift_down(s, np.maximum(behind - 7, 0)))
    c24 = _shift_down(c << 1, both - ec)
    if even_odd:
        c24 = np.where(ec >= both - 25, c24, 0)
    result = round_to_f32(s31 + (c24 << 7), both - 31)
    return _with_specials(result, values, c_bits)


def _with_specials(result: np.ndarray, values: np.ndarray, c_bits: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        total = values.sum(axis=-1) + _floats(c_bits)
        up, down = (values >= 2.0**128).any(axis=-1), (values <= -(2.0**128)).any(axis=-1)
    result = np.where(up, 0x7F800000, np.where(down, 0xFF800000, result))
    result = np.where(up & down, 0x7FC00000, result)
    special = np.where(np.isnan(total), 0x7FC00000, np.where(total > 0, 0x7F800000, 0xFF800000))
    return np.where(np.isfinite(total), result, special).astype(np.uint32)


def multiply_accumulate(a_type, b_type, a, b, c, a_scale=None, b_scale=None, zero=FAR):
    """D bits of tiles A (n, M, K), B (n, K, N), C (n, M, N); scales are E8M0 codes (n, M, K/32), (n, K/32, N)."""
    sa, ea, va = split(a_type, a, zero)
    sb, eb, vb = split(b_type, b, zero)
    fraction = FORMATS[a_type].mantissa_bits + FORMATS[b_type].mantissa_bits
    if a_type == "xf32":
        sa, sb, fraction = sa >> 13, sb >> 13, 20
    size = GROUPS.get(a_type, 16)
    d = c.astype(np.uint32)
    for k in range(0, a.shape[2], size):
        left, right = slice(k, k + size), np.swapaxes
        p = sa[:, :, None, left] * right(sb[:, left], 1, 2)[:, None] << (KEPT - fraction)
        e = ea[:, :, None, left] + right(eb[:, left], 1, 2)[:, None]
        with np.errstate(invalid="ignore"):
            values = va[:, :, None, left] * right(vb[:, left], 1, 2)[:, None]
        if a_scale is not None:
            x, y = a_scale[:, :, None, k // 32].astype(np.int64), b_scale[:, None, k // 32].astype(np.int64)
            shift = (x + y - 254)[..., None]
            e = e + shift
            values = np.where(((x == 255) | (y == 255))[..., None], np.nan, np.ldexp(values, shift))
        d = _add_group(p, e, values, d, size == 16)
    return d
