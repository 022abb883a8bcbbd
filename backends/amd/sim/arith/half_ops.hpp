// f16 functions built from their f32 counterparts, and the fast forms of f16 arithmetic.
#pragma once

#include "convert.hpp"
#include "division.hpp"
#include "minmax.hpp"

namespace amdsim::arith {

inline f16 negated(f16 x) { return {u16(x.bits ^ 0x8000u)}; }

// A function whose f32 result is exact in f16 (or NaN).
template <class Function>
inline f16 exactly(f16 x, Function function) {
  return to_f16(function(to_f32(x)));
}

inline f16 half_min(f16 a, f16 b, bool ieee) {
  return narrowed_keeping_signals(min_num(widened_keeping_signals(a), widened_keeping_signals(b), ieee));
}
inline f16 half_max(f16 a, f16 b, bool ieee) {
  return narrowed_keeping_signals(max_num(widened_keeping_signals(a), widened_keeping_signals(b), ieee));
}
inline f16 half_minimum(f16 a, f16 b) { return to_f16(minimum(to_f32(a), to_f32(b))); }
inline f16 half_maximum(f16 a, f16 b) { return to_f16(maximum(to_f32(a), to_f32(b))); }

// x - floor(x), exact in f32, rounded to f16; at most the largest f16 below 1.
inline f16 half_fract(f16 x, HalfMode mode) {
  const f32 value = to_f32(x);
  const f16 rounded = to_f16(with_nan_of<f32>(value - std::floor(value), value), mode);
  return rounded.bits == 0x3c00u ? f16{0x3bffu} : rounded;
}

// An inexact f64 made odd rounds to any narrower format as the exact value does (two bits narrower suffice).
inline f64 made_odd(f64 sum, f64 error) {
  const u64 b = bits<u64>(sum);
  const u64 towards = (error > 0.0) == (sum > 0.0) ? b + 1 : b - 1;
  const bool adjust = error != 0.0 && (b & 1) == 0 && sum - sum == 0.0;
  return adjust ? bits<f64>(towards) : sum;
}

// f64 -> f16 to nearest even with integer operations only; NaNs are quieted.
inline f16 to_f16_nearest(f64 x) {
  const u64 magnitude = bits<u64>(x) & 0x7fffffffffffffffull;
  const u64 normal = (magnitude - (u64(1008) << 52) + ((u64(1) << 41) - 1) + (magnitude >> 42 & 1)) >> 42;
  const u64 field = magnitude >> 52;
  const u64 shift = field < 997 ? 54 : 1051 - (field > 1008 ? 1008 : field);
  const u64 significand = (magnitude & ((u64(1) << 52) - 1)) | u64(1) << 52;
  const u64 tiny = (significand + (u64(1) << (shift - 1)) - 1 + (significand >> shift & 1)) >> shift;
  u64 code = magnitude < (u64(1009) << 52) ? tiny : normal;
  code = magnitude >= 0x40effe0000000000ull ? 0x7c00 : code;
  code = magnitude > 0x7ff0000000000000ull ? 0x7e00 : code;
  return {u16((bits<u64>(x) >> 48 & 0x8000u) | code)};
}

// Fused multiply-add to nearest even: the product is exact in f64, the sum is made odd before it is rounded.
inline f16 quick_fma(f16 a, f16 b, f16 c) {
  const f64 product = f64(to_f32(a)) * f64(to_f32(b)), addend = to_f32(c);
  const f64 sum = product + addend;
  const f64 back = sum - product;
  const f64 error = (product - (sum - back)) + (addend - back);
  const f16 result = to_f16_nearest(made_odd(sum, error == error ? error : 0.0));
  const u16 invalid = is_nan(a)   ? u16(a.bits | 0x200u)
                      : is_nan(b) ? u16(b.bits | 0x200u)
                      : is_nan(c) ? u16(c.bits | 0x200u)
                                  : kNan16;
  return sum == sum ? result : f16{invalid};
}

}  // namespace amdsim::arith
