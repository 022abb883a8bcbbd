// Conversions between integers and floats, and the small formats with scales and stochastic rounding.
#pragma once

#include <limits>

#include "floats.hpp"
#include "mfma_elements.hpp"

namespace amdsim::arith {

// Float to integer: towards zero, saturating, NaN gives 0.
template <class I, class F>
inline I to_int(F x) {
  using Limits = std::numeric_limits<I>;
  const F low = static_cast<F>(Limits::min());
  const F beyond = F(u64(1) << (Limits::digits - 1)) * F(2);
  const I inside = static_cast<I>(x > low && x < beyond ? x : F(0));
  return x >= beyond ? Limits::max() : x <= low ? Limits::min() : inside;
}
template <class I>
inline I to_int(f16 x) {
  return to_int<I>(to_f32(x));
}

// V_CVT_*NORM_*: [-1, 1] or [0, 1] to the integer's range, to nearest even; NaN gives 0.
inline i16 to_snorm16(f32 x) {
  const f32 bounded = x > 1.0f ? 1.0f : x < -1.0f ? -1.0f : x == x ? x : 0.0f;
  return i16((f64(bounded) * 32767.0 + 0x1.8p52) - 0x1.8p52);
}
inline u16 to_unorm16(f32 x) {
  const f32 bounded = x > 1.0f ? 1.0f : x > 0.0f ? x : 0.0f;
  return u16((f64(bounded) * 65535.0 + 0x1.8p52) - 0x1.8p52);
}

template <class Narrow, class Wide>
inline Narrow saturate_to(Wide x) {
  constexpr Wide low = std::numeric_limits<Narrow>::min(), high = std::numeric_limits<Narrow>::max();
  return static_cast<Narrow>(x < low ? low : x > high ? high : x);
}

// A value times 2^power, exactly.
inline Exact scaled(Exact value, int power) {
  value.exponent += power;
  return value;
}

// The element of a block-scaled tensor: x * 2^(field - 127), the field being the exponent of an f32 scale (CDNA4 ISA 7.3,
// converts with scale). A NaN scale makes a NaN.
inline Exact rescaled(Exact x, u32 field) {
  if (field == kE8m0Nan) x.kind = NumberClass::nan;
  return scaled(x, e8m0_exponent(u8(field)));
}

// Stochastic rounding: `random` supplies its top (23 - mantissa bits) bits, in units below the last kept bit,
// and the sum is truncated (CDNA3 ISA, V_CVT_SR_FP8_F32: S1[31:12] for three mantissa bits). The carry goes
// into the exponent.
inline u64 encode_stochastic(const FloatFormat& format, const Exact& value, u32 random, Overflow overflow) {
  if (value.kind != NumberClass::finite) return encode(format, value, Rounding::nearest_even, overflow);
  const int fraction_bits = 23 - format.mantissa_bits;
  const int top = 63 - std::countl_zero(value.significand) + value.exponent;
  const int exponent = top > format.min_exponent() ? top : format.min_exponent();
  const int unit = exponent - format.mantissa_bits - fraction_bits;  // weight of the random number's last bit
  const int shift = unit - value.exponent;
  const u64 aligned = shift <= 0 ? value.significand << -shift : shift < 64 ? value.significand >> shift : 0;
  const u64 kept = (aligned + (random >> (32 - fraction_bits))) >> fraction_bits;
  if (kept == 0) return format.specials == Specials::fnuz || !value.negative ? 0 : format.sign_bit();
  const Exact truncated{NumberClass::finite, value.negative, exponent - format.mantissa_bits, kept, false};
  return encode(format, truncated, Rounding::nearest_even, overflow);
}

// V_PRNG_B32: one step of the generator that multi-value stochastic conversions use between values.
inline u32 prng_step(u32 x) { return (x << 1) ^ ((x >> 31) != 0 ? 197u : 0u); }

inline Exact exact(f32 x) { return decode(kF32, bits<u32>(x)); }
inline Exact exact(f16 x) { return decode(kF16, x.bits); }
inline Exact exact(bf16 x) { return decode(kBf16, x.bits); }

// The fp8 pair of the target: OCP on gfx950, FNUZ on gfx942.
inline const FloatFormat& fp8_format(bool fnuz) { return fnuz ? kFp8Fnuz : kFp8Ocp; }
inline const FloatFormat& bf8_format(bool fnuz) { return fnuz ? kBf8Fnuz : kBf8Ocp; }

// f32 -> f16 in any direction; MODE.fp16_ovfl turns the overflow of a finite number into the largest one.
inline f16 to_f16(f32 x, HalfMode mode) {
  if (x != x) return to_f16(x);
  const Overflow overflow = std::isfinite(x) ? mode.overflow : Overflow::special;
  return {u16(encode(kF16, exact(x), mode.rounding, overflow))};
}
// f64 -> f32 in the host's direction; NaN payloads keep their top bits.
inline f32 to_f32(f64 x) {
  const u64 b = bits<u64>(x);
  const u32 nan = u32(b >> 32 & 0x80000000u) | 0x7fc00000u | u32(b >> 29 & 0x3fffffu);
  return x != x ? bits<f32>(nan) : static_cast<f32>(x);
}
inline f64 to_f64(f32 x) {
  const u64 b = bits<u32>(x);
  return x != x ? bits<f64>((b & 0x80000000u) << 32 | 0x7ff8000000000000ull | (b & 0x3fffffu) << 29)
                : static_cast<f64>(x);
}

}  // namespace amdsim::arith
