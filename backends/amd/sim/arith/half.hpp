// IEEE binary16 and bfloat16 to and from binary32, round to nearest even.
#pragma once

#include "../core/types.hpp"

namespace amdsim::arith {

inline float half_to_float(u16 h) {
  const u32 sign = u32(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
  if (exponent == 31) return bits<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent) return bits<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return bits<float>(bits<u32>(magnitude) | sign);
}

inline u16 float_to_half(float x) {
  const u32 b = bits<u32>(x), sign = b >> 16 & 0x8000, magnitude = b & 0x7fffffff;
  if (magnitude > 0x7f800000u) return static_cast<u16>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x47800000u) return static_cast<u16>(sign | 0x7c00);
  if (magnitude < 0x38800000u) {  // subnormal result: let the adder round at 2^-24
    const float shifted = bits<float>(magnitude) + 0.5f;
    return static_cast<u16>(sign | (bits<u32>(shifted) - 0x3f000000u));
  }
  return static_cast<u16>(sign | ((magnitude - 0x38000000u + 0xfff + (magnitude >> 13 & 1)) >> 13));
}

inline float bf16_to_float(u16 h) { return bits<float>(u32(h) << 16); }

inline u16 float_to_bf16(float x) {
  const u32 b = bits<u32>(x);
  if ((b & 0x7fffffff) > 0x7f800000u) return static_cast<u16>(b >> 16 | 0x40);
  return static_cast<u16>((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

}  // namespace amdsim::arith
