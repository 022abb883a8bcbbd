// v_exp, v_log, v_rcp, v_rsq, v_sqrt, v_sin, v_cos. The ISA promises 1 ulp for f32 with subnormals flushed,
// 0.51 ulp for f16, and 2^29 ulp for the f64 reciprocals; the functions here are evaluated in f64 with add,
// multiply and divide only, so that every host gives the same bits. The build must not contract them into
// fused operations.
#pragma once

#include "floats.hpp"

namespace amdsim::arith {
namespace detail {

inline f64 two_to(i32 exponent) { return bits<f64>(u64(i64(exponent) + 1023) << 52); }

// To the nearest integer, ties to even, for |x| < 2^51.
inline f64 nearest(f64 x) { return (x + 0x1.8p52) - 0x1.8p52; }

template <int N>
inline f64 horner(const f64 (&coefficients)[N], f64 x) {
  f64 sum = coefficients[N - 1];
  for (int i = N - 2; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

// ln(2)^k / k!
inline constexpr f64 kExp2[] = {1.0,
                                0.69314718055994530942,
                                0.24022650695910071233,
                                0.055504108664821579953,
                                0.009618129107628477162,
                                0.0013333558146428443423,
                                0.00015403530393381609954,
                                0.00001525273380405984028,
                                1.3215486790144309488e-6,
                                1.0178086009239699727e-7,
                                7.0549116208011233299e-9,
                                4.4455382718708114976e-10,
                                2.5678435993488205142e-11};
// 2 / (ln(2) * (2k + 1))
inline constexpr f64 kLog2[] = {2.8853900817779268147,  0.96179669392597560491, 0.57707801635558536294,
                                0.4121985831111324021,  0.32059889797532520164, 0.26230818925253880134,
                                0.22195308321368667806, 0.19235933878519512098, 0.16972882833987804792,
                                0.15186263588304877972, 0.1373995277037108007};
// (-1)^k (2 pi)^(2k+1) / (2k+1)! and (-1)^k (2 pi)^(2k) / (2k)!
inline constexpr f64 kSin[] = {6.2831853071795864769,  -41.341702240399760234,  81.605249276075054203,
                               -76.705859753061385842, 42.058693944897653145,   -15.094642576822990392,
                               3.8199525848482821277,  -0.71812230177850051223, 0.10422916220813984117};
inline constexpr f64 kCos[] = {1.0,
                               -19.739208802178717238,
                               64.939394022668291491,
                               -85.456817206693727736,
                               60.244641371876660363,
                               -26.426256783374397453,
                               7.9035363713184688042,
                               -1.7143907110886720654,
                               0.28200596845579121507,
                               -0.036382841142545670772};

inline f64 exp2_of(f64 x) {
  const f64 whole = nearest(x);
  return horner(kExp2, x - whole) * two_to(i32(whole));
}

// x positive, normal and finite.
inline f64 log2_of(f64 x) {
  const u64 b = bits<u64>(x);
  const u64 shifted = b - 0x3fe6a09e667f3bcdull;  // sqrt(1/2): the significand ends up in [sqrt(1/2), sqrt(2))
  const i64 exponent = i64(shifted) >> 52;
  const f64 m = bits<f64>(b - (u64(exponent) << 52));
  const f64 s = (m - 1.0) / (m + 1.0);
  return f64(i32(exponent)) + s * horner(kLog2, s * s);
}

// sin(2 pi x) for |x| <= 256, and cos as sin a quarter turn further.
inline f64 sin_turns(f64 x, int quarters) {
  const f64 turn = x - nearest(x);
  const f64 quarter = nearest(4.0 * turn);
  const f64 t = turn - 0.25 * quarter;
  const f64 s = t * horner(kSin, t * t);
  const f64 c = horner(kCos, t * t);
  const i32 quadrant = (i32(quarter) + quarters) & 3;
  const f64 value = (quadrant & 1) != 0 ? c : s;
  return (quadrant & 2) != 0 ? 0.0 - value : value;
}

}  // namespace detail

inline f64 exp2_wide(f64 x) {
  const f64 bounded = x > 300.0 ? 300.0 : x < -300.0 ? -300.0 : x == x ? x : 0.0;
  return detail::exp2_of(bounded);
}

inline f32 exp2(f32 x) {
  const f32 value = f32(exp2_wide(x));
  return x != x ? quieted(x) : value < 0x1p-126f ? 0.0f : value;
}

// `x` f32 or an f16 widened; a zero gives -inf, a negative number NaN.
inline f64 log2_wide(f32 x) {
  const bool ordinary = x > 0.0f && x <= 0x1.fffffep127f;
  const f64 value = detail::log2_of(ordinary ? f64(x) : 1.0);
  const f64 special = x == 0.0f ? -HUGE_VAL : x > 0.0f ? HUGE_VAL : bits<f64>(kNan64);
  return ordinary ? value : special;
}

inline f32 log2(f32 x) {
  const f32 flushed = bits<f32>(flush32(bits<u32>(x)));
  return with_nan_of<f32>(f32(log2_wide(flushed)), x);
}

inline f32 rcp(f32 x) {
  const f32 flushed = bits<f32>(flush32(bits<u32>(x)));
  return with_nan_of<f32>(bits<f32>(flush32(bits<u32>(1.0f / flushed))), x);
}

inline f32 sqrt(f32 x) {
  const f32 flushed = bits<f32>(flush32(bits<u32>(x)));
  return with_nan_of<f32>(__builtin_sqrtf(flushed), x);
}

inline f64 rsqrt_wide(f32 x) {
  const f64 root = __builtin_sqrt(f64(x));
  return 1.0 / root;  // -0 keeps its sign: -inf
}

inline f32 rsqrt(f32 x) {
  const f32 flushed = bits<f32>(flush32(bits<u32>(x)));
  return with_nan_of<f32>(f32(rsqrt_wide(flushed)), x);
}

// Valid for |x| <= 256; beyond, sin is 0 and cos is 1 (ISA, V_SIN_F32). A zero keeps its sign.
inline f64 sin_wide(f32 x) {
  const bool valid = x >= -256.0f && x <= 256.0f;
  const f64 value = detail::sin_turns(valid ? f64(x) : 0.0, 0);
  const f64 outside = x - x == 0.0f ? 0.0 : bits<f64>(kNan64);
  return valid ? (x == 0.0f ? f64(x) : value) : outside;
}
inline f64 cos_wide(f32 x) {
  const bool valid = x >= -256.0f && x <= 256.0f;
  const f64 value = detail::sin_turns(valid ? f64(x) : 0.0, 1);
  const f64 outside = x - x == 0.0f ? 1.0 : bits<f64>(kNan64);
  return valid ? value : outside;
}
inline f32 sin(f32 x) {
  const f32 flushed = bits<f32>(flush32(bits<u32>(x)));
  return with_nan_of<f32>(bits<f32>(flush32(bits<u32>(f32(sin_wide(flushed))))), x);
}
inline f32 cos(f32 x) { return with_nan_of<f32>(f32(cos_wide(x)), x); }

// f16: the f64 value rounded once; subnormals are honoured.
inline f16 half_of(f64 value, f16 source) {
  if (is_nan(source)) return {u16(source.bits | 0x200u)};
  return {u16(value != value ? kNan16 : encode(kF16, value))};
}
inline f16 exp2(f16 x) { return half_of(exp2_wide(to_f32(x)), x); }
inline f16 log2(f16 x) { return half_of(log2_wide(to_f32(x)), x); }
inline f16 rcp(f16 x) { return half_of(1.0 / f64(to_f32(x)), x); }
inline f16 sqrt(f16 x) { return half_of(__builtin_sqrt(f64(to_f32(x))), x); }
inline f16 rsqrt(f16 x) { return half_of(rsqrt_wide(to_f32(x)), x); }
inline f16 sin(f16 x) { return half_of(sin_wide(to_f32(x)), x); }
inline f16 cos(f16 x) { return half_of(cos_wide(to_f32(x)), x); }

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
