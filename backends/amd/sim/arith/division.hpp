// The parts of an IEEE division: V_DIV_SCALE, V_DIV_FMAS, V_DIV_FIXUP, and LDEXP, FREXP, FRACT.
#pragma once

#include <limits>

#include "floats.hpp"

namespace amdsim::arith {
namespace detail {

template <class F>
struct DivisionLimits;
template <>
struct DivisionLimits<f32> {
  static constexpr int scale = 64, near_max = 96, tiny_numerator = 23, underflow = -150, field_max = 255;
};
template <>
struct DivisionLimits<f64> {
  static constexpr int scale = 128, near_max = 768, tiny_numerator = 53, underflow = -1075, field_max = 2047;
};

template <class F>
inline int exponent_field(F x) {
  using T = FloatTraits<F>;
  return static_cast<int>(bits<typename T::Bits>(x) >> T::format.mantissa_bits) & DivisionLimits<F>::field_max;
}

template <class F>
inline bool is_subnormal(F x) {
  return x != F(0) && exponent_field(x) == 0;
}

// |n / d| below the smallest normal number, decided without a rounded quotient.
template <class F>
inline bool quotient_is_subnormal(F n, F d) {
  int n_exponent, d_exponent;
  const F n_fraction = std::frexp(std::fabs(n), &n_exponent), d_fraction = std::frexp(std::fabs(d), &d_exponent);
  const int exponent = n_exponent - d_exponent - (n_fraction < d_fraction ? 1 : 0);  // floor(log2 |n / d|)
  return exponent < FloatTraits<F>::format.min_exponent();
}

}  // namespace detail

template <class F>
struct Scaled {
  F value;
  bool vcc;
};

// S0 is S1 (denominator) or S2 (numerator), scaled so that the Newton steps neither overflow nor lose bits;
// vcc tells V_DIV_FMAS to scale back. The ISA's pseudo-code scales the denominator by +64 when both 1/S1 and
// S2/S1 are subnormal, which would overflow it; scaling by -64 is what gives IEEE quotients with the scale
// V_DIV_FMAS applies.
template <class F>
inline Scaled<F> div_scale(F s0, F s1, F s2) {
  using L = detail::DivisionLimits<F>;
  if (s1 == F(0) || s2 == F(0)) return {default_nan<F>(), false};
  if (!std::isfinite(s1) || !std::isfinite(s2)) return {s0, false};
  const bool is_denominator = s0 == s1, is_numerator = s0 == s2;
  const bool reciprocal_subnormal =
      detail::exponent_field(s1) >= L::field_max - 2 && detail::quotient_is_subnormal(F(1), s1);
  const bool quotient_subnormal = detail::quotient_is_subnormal(s2, s1);
  if (detail::exponent_field(s2) - detail::exponent_field(s1) >= L::near_max)
    return {is_denominator ? std::ldexp(s0, L::scale) : s0, true};
  if (detail::is_subnormal(s1)) return {std::ldexp(s0, L::scale), false};
  if (reciprocal_subnormal && quotient_subnormal) return {is_denominator ? std::ldexp(s0, -L::scale) : s0, true};
  if (reciprocal_subnormal) return {std::ldexp(s0, -L::scale), false};
  if (quotient_subnormal) return {is_numerator ? std::ldexp(s0, L::scale) : s0, true};
  if (detail::exponent_field(s2) <= L::tiny_numerator) return {std::ldexp(s0, L::scale), false};
  return {s0, false};
}

// fma, scaled back by 2^+-64 (f64: 128). The direction follows the size of the quotient S2, as the RDNA3 ISA
// spells out; the CDNA texts give one factor only, which no scaling of V_DIV_SCALE would match.
template <class F>
inline F div_fmas(F s0, F s1, F s2, bool vcc) {
  const F plain = fma(s0, s1, s2);
  if (!vcc || plain != plain) return plain;
  const int scale = detail::DivisionLimits<F>::scale;
  if (detail::exponent_field(s2) > FloatTraits<F>::format.bias) return std::ldexp(plain, scale);
  // Scaled down the result may be subnormal: it is rounded once, from the exact sum.
  const f64 product = f64(s0) * f64(s1);
  Exact sum = exact_sum(s2, product, __builtin_fma(f64(s0), f64(s1), -product));
  sum.exponent -= scale;
  return bits<F>(typename FloatTraits<F>::Bits(encode(FloatTraits<F>::format, sum)));
}

// The ISA tests exponent(S1) == 255 for overflow, which the infinite S1 above already was; a quotient that must
// overflow, for which the Newton steps have produced NaN, is what the clause has to catch.
template <class F>
inline F div_fixup(F s0, F s1, F s2) {
  using L = detail::DivisionLimits<F>;
  const bool negative = std::signbit(s1) != std::signbit(s2);
  const auto with_sign = [negative](F x) { return negative ? -x : x; };
  if (s2 != s2) return quieted(s2);
  if (s1 != s1) return quieted(s1);
  if ((s1 == F(0) && s2 == F(0)) || (std::isinf(s1) && std::isinf(s2))) return default_nan<F>();
  if (s1 == F(0) || std::isinf(s2)) return with_sign(F(HUGE_VAL));
  if (std::isinf(s1) || s2 == F(0)) return with_sign(F(0));
  const int distance = std::ilogb(s2) - std::ilogb(s1);
  if (distance < L::underflow) return with_sign(F(0));
  if (s0 != s0 && distance > FloatTraits<F>::format.bias + 1) return with_sign(F(HUGE_VAL));
  return with_sign(std::fabs(s0));
}

inline f16 div_fixup(f16 s0, f16 s1, f16 s2) {
  const u16 sign = (s1.bits ^ s2.bits) & 0x8000u;
  const auto zero = [](f16 x) { return (x.bits & 0x7fffu) == 0; };
  const auto infinite = [](f16 x) { return (x.bits & 0x7fffu) == 0x7c00u; };
  if (is_nan(s2)) return {u16(s2.bits | 0x200u)};
  if (is_nan(s1)) return {u16(s1.bits | 0x200u)};
  if ((zero(s1) && zero(s2)) || (infinite(s1) && infinite(s2))) return {kNan16};
  if (zero(s1) || infinite(s2)) return {u16(sign | 0x7c00u)};
  if (infinite(s1) || zero(s2)) return {sign};
  return {u16((s0.bits & 0x7fffu) | sign)};
}

// x * 2^n, rounded once in the host's direction.
template <class F>
inline F ldexp(F x, i32 n) {
  if (x != x) return quieted(x);
  const i32 bounded = n > 4200 ? 4200 : n < -4200 ? -4200 : n;
  return std::ldexp(x, bounded);
}
// An f32 times a power of two is exact in f64.
WARPWAVE_INLINE f32 ldexp(f32 x, i32 n) {
  const i32 below = n > 400 ? 400 : n, bounded = below < -400 ? -400 : below;
  const f32 value = f32(f64(x) * bits<f64>(u64(bounded + 1023) << 52));
  return x != x ? quieted(x) : value;
}
inline f16 ldexp(f16 x, i16 n, HalfMode mode) {
  if (is_nan(x)) return {u16(x.bits | 0x200u)};
  const i32 bounded = n > 100 ? 100 : n < -100 ? -100 : n;
  return {u16(encode(kF16, std::ldexp(f64(to_f32(x)), bounded), mode.rounding, mode.overflow))};
}

// FREXP: the significand in [1/2, 1) and its exponent; infinities and NaNs give themselves (quieted) and 0.
template <class F>
inline F frexp_mant(F x) {
  int exponent;
  return x != x ? quieted(x) : std::isinf(x) ? x : std::frexp(x, &exponent);
}
template <class F>
inline i32 frexp_exp(F x) {
  int exponent = 0;
  if (std::isfinite(x)) std::frexp(x, &exponent);
  return std::isfinite(x) ? exponent : 0;
}

// x - floor(x), at most the largest number below 1.
template <class F>
WARPWAVE_INLINE F fract(F x) {
  const F largest = std::nextafter(F(1), F(0));
  const F value = with_nan_of<F>(x - std::floor(x), x);
  return value >= F(1) ? largest : value;
}

// Round to integral; NaNs are quieted.
template <class F>
WARPWAVE_INLINE F rndne(F x) {
  const F magnitude = std::fabs(x), below = std::floor(magnitude);
  const F fraction = magnitude - below;  // exact, so the host's rounding direction does not matter
  const bool odd = std::floor(below / F(2)) * F(2) != below;
  const F rounded = fraction > F(0.5) || (fraction == F(0.5) && odd) ? below + F(1) : below;
  return x != x ? quieted(x) : std::copysign(rounded, x);
}
template <class F>
WARPWAVE_INLINE F integral(F (*function)(F), F x) {
  return x != x ? quieted(x) : function(x);
}

}  // namespace amdsim::arith
