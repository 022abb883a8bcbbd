// f16 functions built from their f32 counterparts, and the f32 arithmetic that rounds to f16 as the exact result does.
#pragma once

#include "convert.hpp"
#include "division.hpp"

namespace amdsim::arith {

WARPWAVE_INLINE f16 negated(f16 x) { return {u16(x.bits ^ 0x8000u)}; }

// A function whose f32 result is exact in f16 (or NaN).
template <class Function>
WARPWAVE_INLINE f16 exactly(f16 x, Function function) {
  return to_f16(function(to_f32(x)));
}

// x - floor(x), exact in f32, rounded to f16; at most the largest f16 below 1.
WARPWAVE_INLINE f16 half_fract(f16 x, HalfMode mode) {
  const f32 value = to_f32(x);
  const f16 rounded = to_f16(with_nan_of<f32>(value - std::floor(value), value), mode);
  return rounded.bits == 0x3c00u ? f16{0x3bffu} : rounded;
}

// Fused multiply-add to nearest even. The product is exact in f32; a sum that is not is made odd, so that it rounds to
// f16 as the exact sum does (it has more than two bits to spare).
WARPWAVE_INLINE f32 wide_fma(f32 a, f32 b, f32 c) {
  const f32 product = a * b, sum = product + c, back = sum - product;
  const f32 missing = (product - (sum - back)) + (c - back);
  return with_nan_of<f32>(made_odd(sum, missing, bits<u32>(sum)), a, b, c);
}

}  // namespace amdsim::arith
