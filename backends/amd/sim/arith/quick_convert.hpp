// Conversions between f32 and narrow formats by integer operations without branches, for loops over lanes; each gives
// the bits of the general conversion of formats.hpp.
#pragma once

#include "floats.hpp"

namespace amdsim::arith {

// f32 magnitude -> code of a format without its sign, to nearest even, before overflow and NaN are looked at. Below the
// first normal number the sum with a power of two, whose last bit is that of the subnormal codes, does the rounding.
template <int Mantissa, int Bias>
WARPWAVE_INLINE u32 rounded_code(u32 magnitude) {
  constexpr u32 drop = 23 - Mantissa, first_normal = 128 - Bias, rounder = (first_normal + drop) << 23;
  const u32 normal = (magnitude - (u32(127 - Bias) << 23) + (1u << (drop - 1)) - 1 + (magnitude >> drop & 1)) >> drop;
  const u32 tiny = bits<u32>(bits<f32>(magnitude) + bits<f32>(rounder)) - rounder;
  return pick(magnitude < first_normal << 23, tiny, normal);
}

// The code of a magnitude as rounded by the caller, with overflow (finite or infinite), NaN and the sign of `x`.
template <const FloatFormat& Format>
WARPWAVE_INLINE u32 finished_code(f32 x, u32 code, u32 over) {
  constexpr bool fnuz = Format.specials == Specials::fnuz;
  constexpr u32 nan = u32(Format.nan()), largest = u32(Format.max_finite()), sign_bit = u32(Format.sign_bit());
  const u32 magnitude = bits<u32>(x) & 0x7fffffffu, sign = bits<u32>(x) >> (32 - Format.width()) & sign_bit;
  const u32 number = pick(magnitude > 0x7f800000u, nan, pick(code > largest, over, code));
  const bool unsigned_code = fnuz & ((number == 0) | (number == nan));
  return number | pick(unsigned_code, 0u, sign);
}

// To a format of at most 8 bits; a finite or infinite value beyond its range becomes `over`.
template <const FloatFormat& Format>
WARPWAVE_INLINE u32 to_small(f32 x, u32 over) {
  return finished_code<Format>(x, rounded_code<Format.mantissa_bits, Format.bias>(bits<u32>(x) & 0x7fffffffu), over);
}
template <const FloatFormat& Format>
constexpr u32 overflow_code(Overflow overflow) {
  if (overflow == Overflow::saturate || Format.specials == Specials::none) return u32(Format.max_finite());
  return u32(Format.specials == Specials::ieee ? Format.infinity() : Format.nan());
}

// The same with stochastic rounding (encode_stochastic): the top bits of `random` are added below the last bit kept, and
// the sum is truncated.
template <const FloatFormat& Format>
WARPWAVE_INLINE u32 to_small_stochastic(f32 x, u32 random, u32 over) {
  constexpr int drop = 23 - Format.mantissa_bits;
  const u32 magnitude = bits<u32>(x) & 0x7fffffffu;
  const i32 field = i32(magnitude >> 23) - 127 + Format.bias, normal = field < 1 ? 1 : field;
  const i32 missing = normal - field, shift = missing < 31 ? missing : 31;  // zeros and subnormals are shifted out
  const u32 significand = (magnitude & 0x7fffffu) | 0x800000u;
  const u32 kept = ((significand >> shift) + (random >> (32 - drop))) >> drop;
  return finished_code<Format>(x, (u32(normal - 1) << Format.mantissa_bits) + kept, over);
}

// x times 2^(exponent of `scale` - 127), or with `Divide` through it; a NaN scale makes a NaN. Of the two steps only
// the second rounds: half of the way from x to a result in range is in range too.
template <bool Divide>
WARPWAVE_INLINE f32 times_scale(f32 x, u32 scale) {
  const i32 field = i32(scale >> 23 & 0xffu), power = Divide ? 127 - field : field - 127, half = power >> 1;
  const f32 first = bits<f32>(u32(127 + half) << 23), second = bits<f32>(u32(127 + power - half) << 23);
  const f32 value = x * first * second;
  const u32 nan = (bits<u32>(x) & 0x80000000u) | 0x7fc00000u;
  return bits<f32>(pick((x != x) | (field == kE8m0Nan), nan, bits<u32>(value)));
}

// f32 -> f16 towards zero; finite values beyond the range become the largest one.
WARPWAVE_INLINE u16 to_f16_toward_zero(f32 x) {
  const u32 magnitude = bits<u32>(x) & 0x7fffffffu, field = magnitude >> 23, below = field < 112 ? field : 112;
  const u32 shift = 126 - (below > 102 ? below : 102);
  const u32 tiny = ((magnitude & 0x7fffffu) | 0x800000u) >> shift, normal = (magnitude - 0x38000000u) >> 13;
  const u32 small = pick(magnitude < 0x38800000u, tiny, normal), finite = small < 0x7bffu ? small : 0x7bffu;
  const u32 number = pick(magnitude == 0x7f800000u, 0x7c00u, finite);
  const u32 code = pick(magnitude > 0x7f800000u, 0x7e00u | (magnitude >> 13 & 0x1ffu), number);
  return u16((bits<u32>(x) >> 16 & 0x8000u) | code);
}

}  // namespace amdsim::arith
