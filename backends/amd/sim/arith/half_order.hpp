// V_MIN, V_MAX, V_MED3 and V_MINIMUM3/V_MAXIMUM3 of f16 on the codes themselves, in 32-bit words, so that loops over
// lanes vectorise. The same rules as minmax.hpp: -0 < +0, IEEE mode quiets and returns signalling NaNs.
#pragma once

#include "floats.hpp"

namespace amdsim::arith {

WARPWAVE_INLINE bool code_is_nan(u32 x) { return (x & 0x7fffu) > 0x7c00u; }
WARPWAVE_INLINE bool code_is_signaling(u32 x) { return (x & 0x7fffu) - 0x7c01u < 0x1ffu; }

// Integers in the order of the numbers.
WARPWAVE_INLINE i32 ordered_code(u32 x) {
  const i32 wide = static_cast<i32>(x << 16) >> 16;
  return wide ^ (wide >> 31 & 0x7fff);
}

template <bool Ieee>
WARPWAVE_INLINE u32 quieting_code(u32 result, u32 a, u32 b) {
  if constexpr (!Ieee) return result;
  return pick(code_is_signaling(a), a | 0x200u, pick(code_is_signaling(b), b | 0x200u, result));
}

// The second operand replaces the first when it comes earlier (or later), or when the first is no number.
template <bool Ieee>
WARPWAVE_INLINE u32 min_code(u32 a, u32 b) {
  const bool a_nan = code_is_nan(a), b_nan = code_is_nan(b), replaces = ordered_code(b) < ordered_code(a);
  return quieting_code<Ieee>(pick(a_nan | (!b_nan & replaces), b, a), a, b);
}
template <bool Ieee>
WARPWAVE_INLINE u32 max_code(u32 a, u32 b) {
  const bool a_nan = code_is_nan(a), b_nan = code_is_nan(b), replaces = ordered_code(b) > ordered_code(a);
  return quieting_code<Ieee>(pick(a_nan | (!b_nan & replaces), b, a), a, b);
}

template <bool Ieee>
WARPWAVE_INLINE u32 min3_code(u32 a, u32 b, u32 c) {
  return min_code<Ieee>(min_code<Ieee>(a, b), c);
}
template <bool Ieee>
WARPWAVE_INLINE u32 max3_code(u32 a, u32 b, u32 c) {
  return max_code<Ieee>(max_code<Ieee>(a, b), c);
}

// Equal as numbers: the zeros are, a NaN is not.
WARPWAVE_INLINE bool equal_codes(u32 a, u32 b) {
  const bool number = !code_is_nan(a);
  return ((a == b) & number) | (((a | b) & 0x7fffu) == 0);
}

template <bool Ieee>
WARPWAVE_INLINE u32 med3_code(u32 a, u32 b, u32 c) {
  const u32 largest = max3_code<Ieee>(a, b, c);
  const u32 rest = pick(equal_codes(largest, b), max_code<Ieee>(a, c), max_code<Ieee>(a, b));
  const u32 middle = pick(equal_codes(largest, a), max_code<Ieee>(b, c), rest);
  const bool a_nan = code_is_nan(a), b_nan = code_is_nan(b), c_nan = code_is_nan(c);
  return pick(a_nan | b_nan | c_nan, min3_code<Ieee>(a, b, c), middle);
}

// IEEE 754-2019 minimum and maximum: the first NaN wins, quieted.
template <bool Largest>
WARPWAVE_INLINE u32 extreme_code(u32 a, u32 b) {
  const u32 ordinary = Largest ? max_code<false>(a, b) : min_code<false>(a, b);
  return pick(code_is_nan(a), a | 0x200u, pick(code_is_nan(b), b | 0x200u, ordinary));
}
template <bool Largest>
WARPWAVE_INLINE u32 extreme3_code(u32 a, u32 b, u32 c) {
  return extreme_code<Largest>(extreme_code<Largest>(a, b), c);
}

}  // namespace amdsim::arith
