// v_exp, v_log, v_rcp, v_rsq, v_sqrt, v_sin, v_cos. The ISA promises 1 ulp for f32 with subnormals flushed,
// 0.51 ulp for f16, and 2^29 ulp for the f64 reciprocals; the functions here are evaluated in f64 with correctly
// rounded operations only, so that every host gives the same bits. The build must not contract them into fused
// operations beyond those that are written. Everything is inlined, so that loops over lanes vectorise; log, rsq, sin and
// cos of f32 take several loops and are in function_rows.cpp.
#pragma once

#include "floats.hpp"
#include "multiversion.hpp"

namespace amdsim::arith {
namespace detail {

// To the nearest integer, ties to even, for |x| < 2^51: added to x it leaves the integer in the low bits.
inline constexpr f64 kToInteger = 0x1.8p52;
inline constexpr f32 kToInteger32 = 0x1.8p23f;  // the same for |x| < 2^22

// Sum of every second term from I on, in powers of y = x * x.
template <int I, int N>
WARPWAVE_INLINE f64 every_second(const f64 (&coefficients)[N], f64 y) {
  if constexpr (I + 2 < N)
    return __builtin_fma(every_second<I + 2>(coefficients, y), y, coefficients[I]);
  else
    return coefficients[I];
}
// Odd and even terms are summed side by side, which halves the chain of dependent operations.
template <int N>
WARPWAVE_INLINE f64 polynomial(const f64 (&coefficients)[N], f64 x) {
  const f64 y = x * x;
  return __builtin_fma(every_second<1>(coefficients, y), x, every_second<0>(coefficients, y));
}

// Chebyshev interpolants, relative error below 5e-16.
// 2^t for |t| <= 1/2.
inline constexpr f64 kExp2[] = {0x1.0000000000000p+0,  0x1.62e42fefa3a19p-1,  0x1.ebfbdff82c598p-3,
                                0x1.c6b08d703ce49p-5,  0x1.3b2ab6fba1ddap-7,  0x1.5d87fe9d7a584p-10,
                                0x1.430913096fd9fp-13, 0x1.ffcb54062e698p-17, 0x1.62bfd47773353p-20,
                                0x1.b675bca4eeebbp-24, 0x1.e6063f7217bc6p-28};
// 2 artanh(s) / (ln(2) s) in u = s * s for u <= 0.02944.
inline constexpr f64 kLog2[] = {0x1.71547652b82fep+1, 0x1.ec709dc3a047dp-1, 0x1.2776c50ee39a8p-1,
                                0x1.a61762d6994c5p-2, 0x1.484afb7803eb7p-2, 0x1.0ca160e467351p-2,
                                0x1.c46df9124cd18p-3, 0x1.b593effe69a3cp-3};
// sin(2 pi t) / t and cos(2 pi t) in u = t * t for t <= 1/8.
inline constexpr f64 kSin[] = {0x1.921fb54442d18p+2, -0x1.4abbce625be41p+5, 0x1.466bc677587f8p+6, -0x1.32d2cce2e5b19p+6,
                               0x1.50782fda12d96p+5, -0x1.e30071afc3e59p+3, 0x1.e3f38399551bfp+1};
inline constexpr f64 kCos[] = {0x1.0000000000000p+0, -0x1.3bd3cc9be458bp+4, 0x1.03c1f081b0780p+6, -0x1.55d3c7dbfd139p+6,
                               0x1.e1f4fb60281f6p+5, -0x1.a6c9c1be9eb49p+4, 0x1.f3dbcea61b1a4p+2};

// |x| <= 1000.
WARPWAVE_INLINE f64 exp2_of(f64 x) {
  const f64 shifted = x + kToInteger;
  const f64 scale = bits<f64>((bits<u64>(shifted) + 1023) << 52);
  return polynomial(kExp2, x - (shifted - kToInteger)) * scale;
}

// x positive, normal and finite, as 2^exponent times a significand in [sqrt(1/2), sqrt(2)).
struct Split {
  f32 significand;
  i32 exponent;
};
WARPWAVE_INLINE Split split(f32 x) {
  const u32 b = bits<u32>(x);
  const i32 exponent = i32(b - 0x3f3504f4u) >> 23;
  return {bits<f32>(b - (u32(exponent) << 23)), exponent};
}
WARPWAVE_INLINE f64 log2_of(f64 significand, f64 exponent) {
  const f64 s = (significand - 1.0) / (significand + 1.0);
  return __builtin_fma(s, polynomial(kLog2, s * s), exponent);
}

// |x| <= 256 turns, as quarters and the exact rest, at most an eighth of a turn.
struct Turns {
  f32 rest;
  u32 quadrant;
};
WARPWAVE_INLINE Turns reduced(f32 x) {
  const f32 turn = x - ((x + kToInteger32) - kToInteger32), shifted = 4.0f * turn + kToInteger32;
  return {turn - 0.25f * (shifted - kToInteger32), bits<u32>(shifted)};
}
WARPWAVE_INLINE f64 sin_of(f64 turns) { return turns * polynomial(kSin, turns * turns); }
WARPWAVE_INLINE f64 cos_of(f64 turns) { return polynomial(kCos, turns * turns); }

// sin(2 pi x) for |x| <= 256, and cos as sin a quarter turn further.
WARPWAVE_INLINE f64 sin_turns(f32 x, u32 quarters) {
  const Turns turns = reduced(x);
  const u32 quadrant = turns.quadrant + quarters;
  const f64 value = pick((quadrant & 1) != 0, cos_of(turns.rest), sin_of(turns.rest));
  return pick((quadrant & 2) != 0, 0.0 - value, value);
}

}  // namespace detail

WARPWAVE_INLINE f64 exp2_wide(f32 x) {
  const f32 below = x > 300.0f ? 300.0f : x, bounded = below < -300.0f ? -300.0f : below;
  return detail::exp2_of(pick(x == x, bounded, 0.0f));
}

// The reduction is exact in f32, and so is the scaling: what would be subnormal is 0.
WARPWAVE_INLINE f32 exp2(f32 x) {
  const f32 shifted = x + detail::kToInteger32;
  const f64 fraction = f64(x - (shifted - detail::kToInteger32));
  const u32 scaled = bits<u32>(f32(detail::polynomial(detail::kExp2, fraction))) + (bits<u32>(shifted) << 23);
  const u32 bounded = pick(x >= 128.0f, 0x7f800000u, pick(x >= -126.0f, scaled, 0u));
  return bits<f32>(pick(x == x, bounded, bits<u32>(x) | 0x00400000u));
}

// A zero gives -inf, a negative number NaN.
WARPWAVE_INLINE f64 log2_wide(f32 x) {
  const bool ordinary = (x > 0.0f) & (x <= 0x1.fffffep127f);
  const detail::Split parts = detail::split(pick(ordinary, x, 1.0f));
  const f64 value = detail::log2_of(parts.significand, parts.exponent);
  const f32 special = pick(x == 0.0f, -HUGE_VALF, pick(x > 0.0f, HUGE_VALF, bits<f32>(kNan32)));
  return pick(ordinary, value, f64(special));
}

WARPWAVE_INLINE f32 flushed_source(f32 x) { return bits<f32>(flush32(bits<u32>(x))); }

WARPWAVE_INLINE f32 rcp(f32 x) {
  return with_nan_of<f32>(bits<f32>(flush32(bits<u32>(1.0f / flushed_source(x)))), x);
}

WARPWAVE_INLINE f32 sqrt(f32 x) { return with_nan_of<f32>(__builtin_sqrtf(flushed_source(x)), x); }

// Valid for |x| <= 256; beyond, sin is 0 and cos is 1 (ISA, V_SIN_F32). A zero keeps its sign.
WARPWAVE_INLINE f64 sin_wide(f32 x) {
  const bool valid = (x >= -256.0f) & (x <= 256.0f);
  const f64 value = detail::sin_turns(pick(valid, x, 0.0f), 0);
  const f32 outside = pick(x - x == 0.0f, 0.0f, bits<f32>(kNan32));
  return pick(valid, pick(x == 0.0f, f64(x), value), f64(outside));
}
WARPWAVE_INLINE f64 cos_wide(f32 x) {
  const bool valid = (x >= -256.0f) & (x <= 256.0f);
  const f64 value = detail::sin_turns(pick(valid, x, 0.0f), 1);
  const f32 outside = pick(x - x == 0.0f, 1.0f, bits<f32>(kNan32));
  return pick(valid, value, f64(outside));
}
// f16: the f64 value rounded once; subnormals are honoured. An inexact f32 made odd on the way rounds as the f64 does.
WARPWAVE_INLINE f16 half_of(f64 value, f16 source) {
  const f32 near = f32(value);
  const f64 missing = __builtin_fabs(value) - f64(__builtin_fabsf(near));
  const f32 odd = made_odd(near, f32(missing), 0);
  const u32 code = pick(near != near, u32(kNan16), u32(to_f16(odd).bits));
  return {u16(pick(is_nan(source), source.bits | 0x200u, code))};
}
WARPWAVE_INLINE f16 exp2(f16 x) { return half_of(exp2_wide(to_f32(x)), x); }
WARPWAVE_INLINE f16 log2(f16 x) { return half_of(log2_wide(to_f32(x)), x); }
WARPWAVE_INLINE f16 rcp(f16 x) { return half_of(1.0 / f64(to_f32(x)), x); }
WARPWAVE_INLINE f16 sqrt(f16 x) { return half_of(__builtin_sqrt(f64(to_f32(x))), x); }
WARPWAVE_INLINE f16 rsqrt(f16 x) { return half_of(1.0 / __builtin_sqrt(f64(to_f32(x))), x); }
WARPWAVE_INLINE f16 sin(f16 x) { return half_of(sin_wide(to_f32(x)), x); }
WARPWAVE_INLINE f16 cos(f16 x) { return half_of(cos_wide(to_f32(x)), x); }

// The f64 reciprocals are seeds for Newton steps. Giving them only the accuracy that the ISA promises (here
// 26 significant bits, 2^27 ulp) makes a missing refinement visible.
inline f64 as_seed(f64 x) {
  const u64 b = bits<u64>(x);
  const bool plain = x - x == 0.0;
  return plain ? bits<f64>((b + (1ull << 26)) & ~((1ull << 27) - 1)) : x;
}
inline f64 rcp(f64 x) { return with_nan_of<f64>(as_seed(1.0 / x), x); }
inline f64 sqrt(f64 x) { return with_nan_of<f64>(as_seed(__builtin_sqrt(x)), x); }
inline f64 rsqrt(f64 x) { return with_nan_of<f64>(as_seed(1.0 / __builtin_sqrt(x)), x); }

}  // namespace amdsim::arith
