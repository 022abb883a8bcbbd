// Conversions between f32 and narrow formats by integer operations without branches, for loops over lanes; each gives
// the bits of the general conversion of formats.hpp.
#pragma once

#include "floats.hpp"

namespace amdsim::arith {

// f32 magnitude -> code of a format without its sign, to nearest even, before overflow and NaN are looked at.
template <int Mantissa, int Bias>
WARPWAVE_INLINE u32 rounded_code(u32 magnitude) {
  constexpr u32 drop = 23 - Mantissa, first_normal = 128 - Bias;
  const u32 normal = (magnitude - (u32(127 - Bias) << 23) + (1u << (drop - 1)) - 1 + (magnitude >> drop & 1)) >> drop;
  constexpr u32 lowest = first_normal + drop - 25;  // below it nothing is left of the significand
  const u32 field = magnitude >> 23, below = field < first_normal - 1 ? field : first_normal - 1;
  const u32 shift = first_normal + drop - (below > lowest ? below : lowest);
  const u32 significand = (magnitude & 0x7fffffu) | 0x800000u;
  const u32 tiny = (significand + (1u << (shift - 1)) - 1 + (significand >> shift & 1)) >> shift;
  return pick(magnitude < first_normal << 23, tiny, normal);
}

// To an 8-bit format; a finite or infinite value beyond its range becomes `over`.
template <const FloatFormat& Format>
WARPWAVE_INLINE u32 to_byte(f32 x, u32 over) {
  constexpr bool fnuz = Format.specials == Specials::fnuz;
  constexpr u32 nan = u32(Format.nan()), largest = u32(Format.max_finite());
  const u32 magnitude = bits<u32>(x) & 0x7fffffffu, sign = bits<u32>(x) >> 24 & 0x80u;
  const u32 code = rounded_code<Format.mantissa_bits, Format.bias>(magnitude);
  const u32 number = pick(magnitude > 0x7f800000u, nan, pick(code > largest, over, code));
  const bool unsigned_code = fnuz & ((number == 0) | (number == nan));
  return number | pick(unsigned_code, 0u, sign);
}
template <const FloatFormat& Format>
constexpr u32 overflow_byte(Overflow overflow) {
  if (overflow == Overflow::saturate) return u32(Format.max_finite());
  return u32(Format.specials == Specials::ieee ? Format.infinity() : Format.nan());
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
