// V_MIN, V_MAX, V_MED3 and V_MINIMUM3/V_MAXIMUM3, word for word from the CDNA3 and CDNA4 ISA pseudo-code.
#pragma once

#include "floats.hpp"

namespace amdsim::arith {

template <class F>
WARPWAVE_INLINE bool negative(F x) {
  return (bits<typename FloatTraits<F>::Bits>(x) & FloatTraits<F>::sign) != 0;
}

// IEEE mode quiets and returns signalling NaNs; otherwise the other operand wins over any NaN; -0 < +0.
template <class F>
WARPWAVE_INLINE F quieting(F result, F a, F b, bool ieee) {
  if (!ieee) return result;
  return pick(is_signaling(a), quieted(a), pick(is_signaling(b), quieted(b), result));
}

template <class F>
WARPWAVE_INLINE F min_num(F a, F b, bool ieee) {
  const bool b_less = (b < a) | ((a == b) & negative(b));
  const F result = pick(a != a, b, pick((b != b) | !b_less, a, b));
  return quieting(result, a, b, ieee);
}

template <class F>
WARPWAVE_INLINE F max_num(F a, F b, bool ieee) {
  const bool b_greater = (b > a) | ((a == b) & negative(a));
  const F result = pick(a != a, b, pick((b != b) | !b_greater, a, b));
  return quieting(result, a, b, ieee);
}

template <class F>
WARPWAVE_INLINE F min3(F a, F b, F c, bool ieee) {
  return min_num(min_num(a, b, ieee), c, ieee);
}
template <class F>
WARPWAVE_INLINE F max3(F a, F b, F c, bool ieee) {
  return max_num(max_num(a, b, ieee), c, ieee);
}

template <class F>
WARPWAVE_INLINE F med3(F a, F b, F c, bool ieee) {
  const F largest = max3(a, b, c, ieee);
  const F rest = pick(largest == b, max_num(a, c, ieee), max_num(a, b, ieee));
  const F middle = pick(largest == a, max_num(b, c, ieee), rest);
  return pick((a != a) | (b != b) | (c != c), min3(a, b, c, ieee), middle);
}

// IEEE 754-2019 minimum/maximum: a NaN source gives a NaN.
template <class F>
WARPWAVE_INLINE F minimum(F a, F b) {
  return pick((a != a) | (b != b), with_nan_of<F>(default_nan<F>(), a, b), min_num(a, b, false));
}
template <class F>
WARPWAVE_INLINE F maximum(F a, F b) {
  return pick((a != a) | (b != b), with_nan_of<F>(default_nan<F>(), a, b), max_num(a, b, false));
}

template <class T>
WARPWAVE_INLINE T int_med3(T a, T b, T c) {
  const T low = a < b ? a : b, high = a < b ? b : a;
  return c < low ? low : c > high ? high : c;
}

}  // namespace amdsim::arith
