// V_MIN, V_MAX, V_MED3 and V_MINIMUM3/V_MAXIMUM3, word for word from the CDNA3 and CDNA4 ISA pseudo-code.
#pragma once

#include "floats.hpp"

namespace amdsim::arith {

// IEEE mode quiets and returns signalling NaNs; otherwise the other operand wins over any NaN; -0 < +0.
template <class F>
inline F min_num(F a, F b, bool ieee) {
  const bool b_less = b < a || (a == b && std::signbit(b));
  F result = b_less ? b : a;
  result = b != b ? a : result;
  result = a != a ? b : result;
  result = ieee && is_signaling(b) ? quieted(b) : result;
  return ieee && is_signaling(a) ? quieted(a) : result;
}

template <class F>
inline F max_num(F a, F b, bool ieee) {
  const bool b_greater = b > a || (a == b && std::signbit(a));
  F result = b_greater ? b : a;
  result = b != b ? a : result;
  result = a != a ? b : result;
  result = ieee && is_signaling(b) ? quieted(b) : result;
  return ieee && is_signaling(a) ? quieted(a) : result;
}

template <class F>
inline F min3(F a, F b, F c, bool ieee) {
  return min_num(min_num(a, b, ieee), c, ieee);
}
template <class F>
inline F max3(F a, F b, F c, bool ieee) {
  return max_num(max_num(a, b, ieee), c, ieee);
}

template <class F>
inline F med3(F a, F b, F c, bool ieee) {
  if (a != a || b != b || c != c) return min3(a, b, c, ieee);
  const F largest = max3(a, b, c, ieee);
  if (largest == a) return max_num(b, c, ieee);
  if (largest == b) return max_num(a, c, ieee);
  return max_num(a, b, ieee);
}

// IEEE 754-2019 minimum/maximum: a NaN source gives a NaN.
template <class F>
inline F minimum(F a, F b) {
  return a != a || b != b ? with_nan_of<F>(default_nan<F>(), a, b) : min_num(a, b, false);
}
template <class F>
inline F maximum(F a, F b) {
  return a != a || b != b ? with_nan_of<F>(default_nan<F>(), a, b) : max_num(a, b, false);
}

// An f16 function of the comparing kind is the f32 function on the widened operands; signalling NaNs must
// survive the widening for IEEE mode to see them.
inline f32 widened_keeping_signals(f16 x) {
  return is_nan(x) ? bits<f32>(u32(x.bits & 0x8000u) << 16 | 0x7f800000u | u32(x.bits & 0x3ffu) << 13) : to_f32(x);
}
inline f16 narrowed_keeping_signals(f32 x) {
  return x != x ? f16{u16((bits<u32>(x) >> 16 & 0x8000u) | 0x7c00u | (bits<u32>(x) >> 13 & 0x3ffu))} : to_f16(x);
}

template <class T>
inline T int_med3(T a, T b, T c) {
  const T low = a < b ? a : b, high = a < b ? b : a;
  return c < low ? low : c > high ? high : c;
}

}  // namespace amdsim::arith
