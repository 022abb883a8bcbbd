// IEEE arithmetic on f32, f64 and f16 with the NaN rules of the vector ALU, independent of the host's own NaN
// rules. f32 and f64 operations round in the host's current direction (see HostRounding), f16 ones in an
// explicit one.
#pragma once

#include <cfenv>
#include <cmath>
#include <initializer_list>

#include "../core/types.hpp"
#include "formats.hpp"
#include "multiversion.hpp"

namespace amdsim::arith {

// The NaN of an invalid operation: 0/0 and inf/inf of V_DIV_FIXUP in the CDNA3 ISA give these bits.
inline constexpr u32 kNan32 = 0xffc00000u;
inline constexpr u64 kNan64 = 0xfff8000000000000ull;
inline constexpr u16 kNan16 = 0xfe00u;

template <class F>
struct FloatTraits;
template <>
struct FloatTraits<f32> {
  using Bits = u32;
  static constexpr const FloatFormat& format = kF32;
  static constexpr u32 quiet_bit = 0x00400000u, sign = 0x80000000u, nan = kNan32;
};
template <>
struct FloatTraits<f64> {
  using Bits = u64;
  static constexpr const FloatFormat& format = kF64;
  static constexpr u64 quiet_bit = 1ull << 51, sign = 1ull << 63, nan = kNan64;
};

// A choice without a branch, also after inlining into chains of them: loops over lanes stay vectorisable.
WARPWAVE_INLINE u32 pick(bool condition, u32 yes, u32 no) {
  const u32 mask = 0u - u32(condition);
  return (yes & mask) | (no & ~mask);
}
WARPWAVE_INLINE u64 pick(bool condition, u64 yes, u64 no) {
  const u64 mask = u64(0) - u64(condition);
  return (yes & mask) | (no & ~mask);
}
WARPWAVE_INLINE f32 pick(bool condition, f32 yes, f32 no) {
  return bits<f32>(pick(condition, bits<u32>(yes), bits<u32>(no)));
}
WARPWAVE_INLINE f64 pick(bool condition, f64 yes, f64 no) {
  return bits<f64>(pick(condition, bits<u64>(yes), bits<u64>(no)));
}

template <class F>
WARPWAVE_INLINE F quieted(F x) {
  using T = FloatTraits<F>;
  return bits<F>(typename T::Bits(bits<typename T::Bits>(x) | T::quiet_bit));
}

template <class F>
WARPWAVE_INLINE F default_nan() {
  return bits<F>(FloatTraits<F>::nan);
}

template <class F>
WARPWAVE_INLINE bool is_signaling(F x) {
  return (x != x) & ((bits<typename FloatTraits<F>::Bits>(x) & FloatTraits<F>::quiet_bit) == 0);
}

// A NaN result is the first NaN source, quieted; without one the operation was invalid.
template <class F>
WARPWAVE_INLINE F with_nan_of(F result, F a, F b) {
  const F source = pick(a != a, quieted(a), pick(b != b, quieted(b), default_nan<F>()));
  return pick(result == result, result, source);
}
template <class F>
WARPWAVE_INLINE F with_nan_of(F result, F a, F b, F c) {
  const F source = pick(a != a, quieted(a), pick(b != b, quieted(b), pick(c != c, quieted(c), default_nan<F>())));
  return pick(result == result, result, source);
}
template <class F>
WARPWAVE_INLINE F with_nan_of(F result, F a) {
  return pick(result == result, result, pick(a != a, quieted(a), default_nan<F>()));
}

template <class F>
WARPWAVE_INLINE F add(F a, F b) {
  return with_nan_of<F>(a + b, a, b);
}
template <class F>
WARPWAVE_INLINE F sub(F a, F b) {
  return with_nan_of<F>(a - b, a, b);
}
template <class F>
WARPWAVE_INLINE F mul(F a, F b) {
  return with_nan_of<F>(a * b, a, b);
}
WARPWAVE_INLINE f32 fma(f32 a, f32 b, f32 c) { return with_nan_of<f32>(__builtin_fmaf(a, b, c), a, b, c); }
WARPWAVE_INLINE f64 fma(f64 a, f64 b, f64 c) { return with_nan_of<f64>(__builtin_fma(a, b, c), a, b, c); }

// V_MUL_LEGACY: zero times anything is +0.
WARPWAVE_INLINE f32 mul_legacy(f32 a, f32 b) { return a == 0.0f || b == 0.0f ? 0.0f : mul(a, b); }

// Subnormals become zeros of the same sign (MODE.denorm).
WARPWAVE_INLINE u32 flush32(u32 x) { return (x & 0x7f800000u) == 0 ? x & 0x80000000u : x; }
WARPWAVE_INLINE u64 flush64(u64 x) { return (x & 0x7ff0000000000000ull) == 0 ? x & 0x8000000000000000ull : x; }
WARPWAVE_INLINE u16 flush16(u16 x) { return (x & 0x7c00u) == 0 ? u16(x & 0x8000u) : x; }

// f16 -> f32, exact and without branches; NaNs are quieted.
WARPWAVE_INLINE f32 to_f32(f16 h) {
  const u32 magnitude = u32(h.bits & 0x7fffu) << 13;
  const f32 finite = bits<f32>(magnitude) * 0x1p112f;
  const u32 special = magnitude | 0x7f800000u | u32(magnitude > 0x0f800000u) << 22;
  const u32 value = pick(magnitude >= 0x0f800000u, special, bits<u32>(finite));
  return bits<f32>(u32(h.bits & 0x8000u) << 16 | value);
}
WARPWAVE_INLINE f32 to_f32(bf16 h) { return bits<f32>(u32(h.bits) << 16); }

// f32 -> f16 to nearest even. The number is scaled so that f16's infinity is f32's, and the addition of a power of two
// with its exponent rounds it at the last bit that f16 keeps (M. Dukhan's FP16 library). Rounds in the host's direction,
// which is the nearest wherever results are f16.
WARPWAVE_INLINE f16 to_f16(f32 x) {
  const u32 magnitude = bits<u32>(x) & 0x7fffffffu, exponent = magnitude & 0x7f800000u;
  const f32 scaled = (bits<f32>(magnitude) * 0x1p112f) * 0x1p-110f;
  const u32 rounder = (exponent > 0x38800000u ? exponent : 0x38800000u) + 0x07800000u;
  const u32 rounded = bits<u32>(bits<f32>(rounder) + scaled);
  const u32 number = (rounded >> 13 & 0x7c00u) + (rounded & 0xfffu);
  const u32 code = pick(magnitude > 0x7f800000u, 0x7e00u | (magnitude >> 13 & 0x1ffu), number);
  return {u16((bits<u32>(x) >> 16 & 0x8000u) | code)};
}

// An f32 that lacks `missing` of an exact value, given an odd last bit: it rounds to a narrower format as the exact value
// does. `direction`: `missing` points away from zero where it has the sign of this word.
WARPWAVE_INLINE f32 made_odd(f32 near, f32 missing, u32 direction) {
  const u32 raw = bits<u32>(near), towards_zero = (bits<u32>(missing) ^ direction) >> 31;
  const u32 inexact = 0u - u32(missing != 0.0f), even = (raw & 1) - 1;
  const u32 finite = 0u - u32((raw & 0x7fffffffu) < 0x7f800000u);
  return bits<f32>(raw + ((1 - 2 * towards_zero) & inexact & even & finite));
}

// f32 -> bf16 to nearest even.
WARPWAVE_INLINE bf16 to_bf16(f32 x) {
  const u32 b = bits<u32>(x);
  const u32 rounded = (b + 0x7fffu + ((b >> 16) & 1)) >> 16;
  return {u16(pick((b & 0x7fffffffu) > 0x7f800000u, b >> 16 | 0x40u, rounded))};
}

// The exact sum a + b + tail as a value with a sticky bit; all finite, |tail| far below the last bit of a + b.
inline Exact exact_sum(f64 a, f64 b, f64 tail = 0.0) {
  const f64 sum = a + b;
  const f64 back = sum - a;
  const f64 error = (a - (sum - back)) + (b - back) + tail;
  Exact value = decode(kF64, bits<u64>(sum));
  if (error == 0.0 || value.kind != NumberClass::finite) return value;
  value.significand <<= 2;
  value.exponent -= 2;
  if ((error < 0.0) != value.negative) value.significand -= 1;
  value.sticky = true;
  return value;
}

// Rounds the exact sum a + b, where a is an exact product or an operand, to f16 in any direction.
inline f16 sum_to_f16(f64 a, f64 b, Rounding mode, Overflow overflow) {
  const f64 sum = a + b;
  if (!std::isfinite(sum) || sum == 0.0) {
    if (sum != sum) return {kNan16};
    const bool down = mode == Rounding::down && sum == 0.0 && std::signbit(a) != std::signbit(b);
    return {u16(encode(kF16, down ? -0.0 : sum, mode, overflow))};
  }
  return {u16(encode(kF16, exact_sum(a, b), mode, overflow))};
}

WARPWAVE_INLINE bool is_nan(f16 x) { return (x.bits & 0x7fffu) > 0x7c00u; }
inline f16 first_nan(f16 a, f16 b, f16 c) {
  for (const f16 x : {a, b, c})
    if (is_nan(x)) return {u16(x.bits | 0x200u)};
  return {kNan16};
}

// f16 operations. Rounding through f32 is innocuous for sums and products (24 >= 2 * 11 + 2 bits); a fused
// multiply-add is made odd in f64 first.
struct HalfMode {
  Rounding rounding = Rounding::nearest_even;
  Overflow overflow = Overflow::special;
};
inline f16 saturated(f16 x, bool finite_sources, HalfMode mode) {
  const bool infinite = (x.bits & 0x7fffu) == 0x7c00u;
  return mode.overflow == Overflow::saturate && infinite && finite_sources ? f16{u16(x.bits - 1)} : x;
}
inline f16 half_from_f64_sum(f16 a, f16 b, f16 c, f64 x, f64 y, HalfMode mode) {
  if (is_nan(a) || is_nan(b) || is_nan(c)) return first_nan(a, b, c);
  const bool finite = std::isfinite(x) && std::isfinite(y);
  return sum_to_f16(x, y, mode.rounding, finite ? mode.overflow : Overflow::special);
}
inline f16 add(f16 a, f16 b, HalfMode mode) { return half_from_f64_sum(a, b, b, to_f32(a), to_f32(b), mode); }
inline f16 fma(f16 a, f16 b, f16 c, HalfMode mode) {
  return half_from_f64_sum(a, b, c, f64(to_f32(a)) * to_f32(b), to_f32(c), mode);
}
inline f16 mul(f16 a, f16 b, HalfMode mode) {
  if (is_nan(a) || is_nan(b)) return first_nan(a, b, b);
  const f64 product = f64(to_f32(a)) * to_f32(b);
  if (product != product) return {kNan16};
  return {u16(encode(kF16, product, mode.rounding, std::isfinite(product) ? mode.overflow : Overflow::special))};
}
// Nearest even without saturation: the common case, free of branches so that a loop over lanes vectorises.
WARPWAVE_INLINE f16 quick_add(f16 a, f16 b) { return to_f16(add(to_f32(a), to_f32(b))); }
WARPWAVE_INLINE f16 quick_mul(f16 a, f16 b) { return to_f16(mul(to_f32(a), to_f32(b))); }

// Sets the host's rounding direction for f32 and f64 operations while it lives.
class HostRounding {
 public:
  explicit HostRounding(Rounding mode) : saved_(std::fegetround()) {
    static constexpr int kDirections[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    std::fesetround(kDirections[static_cast<int>(mode)]);
  }
  ~HostRounding() { std::fesetround(saved_); }
  HostRounding(const HostRounding&) = delete;
  HostRounding& operator=(const HostRounding&) = delete;

 private:
  int saved_;
};

}  // namespace amdsim::arith
