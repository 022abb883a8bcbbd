// Codes of short floating-point formats, by integer arithmetic: every rounding, with and without saturation.
#pragma once
#include "ptx/base.cuh"

namespace ww {

enum Rounding { rne, rtz, rta, rtp, rtn };

// A binary format: exponent and fraction bits, bias, the largest finite code, and what lies beyond.
template <int E, int M, int Bias, u32 Largest, bool Inf, bool Fnuz> struct format {
  static constexpr int fraction = M, bias = Bias, sign_bit = E + M;
  static constexpr u32 largest = Largest;
  static constexpr bool has_inf = Inf, fnuz = Fnuz;
  static constexpr u32 nan = Fnuz ? 1u << (E + M) : Inf ? Largest + 1 + (1u << (M - 1)) : Largest + 1;
};
typedef format<8, 7, 127, 0x7f7f, true, false> bf16_format;
typedef format<5, 10, 15, 0x7bff, true, false> f16_format;
typedef format<4, 3, 7, 0x7e, false, false> fp8e4m3_format;
typedef format<5, 2, 15, 0x7b, true, false> fp8e5m2_format;
typedef format<4, 3, 8, 0x7f, false, true> fp8e4m3fnuz_format;
typedef format<5, 2, 16, 0x7f, false, true> fp8e5m2fnuz_format;

template <class F, Rounding R, bool Saturate> DEVICE u32 overflow_code(u32 sign, bool was_infinite) {
  bool stops = !was_infinite && (R == rtz || (R == rtp && sign) || (R == rtn && !sign));
  if (Saturate || stops) return sign << F::sign_bit | F::largest;
  if (F::has_inf) return sign << F::sign_bit | (F::largest + 1);
  return F::fnuz ? F::nan : sign << F::sign_bit | F::nan;
}

template <Rounding R> DEVICE bool rounds_up(u32 kept, u32 rest, u32 half, u32 sign) {
  if (R == rne) return rest > half || (rest == half && (kept & 1));
  if (R == rta) return rest >= half;
  if (R == rtp) return rest != 0 && !sign;
  if (R == rtn) return rest != 0 && sign;
  return false;
}

// f32 to a shorter format, any rounding, exactly as the language defines it.
template <class F, Rounding R, bool Saturate> DEVICE u32 encode(float x) {
  u32 b = bits<u32>(x), sign = b >> 31, magnitude = b & 0x7fffffff;
  if (magnitude > 0x7f800000) return F::fnuz ? F::nan : sign << F::sign_bit | F::nan;
  if (magnitude == 0x7f800000) return overflow_code<F, R, Saturate>(sign, true);
  u32 field = magnitude >> 23;
  u32 significand = field ? (magnitude & 0x7fffff) | 0x800000 : magnitude;
  int exponent = (int)(field ? field : 1) - 127;
  int quantum = (exponent > 1 - F::bias ? exponent : 1 - F::bias) - F::fraction;
  int shift = quantum - (exponent - 23);
  shift = shift > 25 ? 25 : shift;
  u32 kept = significand >> shift, rest = significand & ((1u << shift) - 1), half = (1u << shift) >> 1;
  // 24 significand bits shifted out by 25 leave less than a half: the comparison above stays right.
  kept += rounds_up<R>(kept, rest, half, sign);
  u32 code = kept + ((u32)(quantum + F::fraction + F::bias - 1) << F::fraction);
  if (code > F::largest) return overflow_code<F, R, Saturate>(sign, false);
  return code == 0 && F::fnuz ? 0 : sign << F::sign_bit | code;
}

template <class F> DEVICE float decode(u32 code) {
  u32 sign = code >> F::sign_bit & 1, magnitude = code & ((1u << F::sign_bit) - 1);
  if (F::fnuz && code == F::nan) return bits<float>(0x7fc00000u);
  if (!F::fnuz && magnitude > F::largest) {
    bool infinite = F::has_inf && magnitude == F::largest + 1;
    return bits<float>(infinite ? 0x7f800000u | sign << 31 : 0x7fc00000u);
  }
  u32 field = magnitude >> F::fraction, fraction = magnitude & ((1u << F::fraction) - 1);
  float normal = bits<float>((field + 127 - F::bias) << 23 | fraction << (23 - F::fraction));
  float subnormal = (float)fraction * bits<float>((u32)(127 + 1 - F::bias - F::fraction) << 23);
  float value = field ? normal : subnormal;
  return sign ? -value : value;
}

// -- fp8 of the OCP standard in hardware (sm_89): two at a time, nearest even, saturating ---------------------

#if __CUDA_ARCH__ >= 890
template <class F> struct fp8_pair;
template <> struct fp8_pair<fp8e4m3_format> { static constexpr char text[] = "e4m3x2"; };
template <> struct fp8_pair<fp8e5m2_format> { static constexpr char text[] = "e5m2x2"; };

// The codes of lo and hi; NaN becomes the positive NaN.
template <class F> DEVICE u16 encode_pair(float lo, float hi) {
  u16 code;
  asm("cvt.rn.satfinite.%3.f32 %0, %2, %1;" : "=h"(code) : "f"(lo), "f"(hi), "C"(fp8_pair<F>::text));
  return code;
}
// Two codes as a pair of f16, exactly.
template <class F> DEVICE u32 decode_pair(u16 codes) {
  u32 pair;
  asm("cvt.rn.f16x2.%2 %0, %1;" : "=r"(pair) : "h"(codes), "C"(fp8_pair<F>::text));
  return pair;
}
#endif

DEVICE float f32_of_f16_bits(u16 x) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x));
  return f;
}

template <class F> DEVICE float decode_fp8(u8 code) {
#if __CUDA_ARCH__ >= 890
  if constexpr (!F::fnuz) return f32_of_f16_bits((u16)decode_pair<F>(code));
#endif
  return decode<F>(code);
}

template <class F, Rounding R, bool Saturate> DEVICE u8 encode_fp8(float x) {
#if __CUDA_ARCH__ >= 890
  if constexpr (R == rne && !F::fnuz) {
    u32 code = encode_pair<F>(x, 0.0f) & 0xff;
    if constexpr (Saturate) return code;
    // What rounds beyond the largest finite value: the tie of e4m3 goes down to it (even), that of e5m2 goes up.
    float magnitude = __int_as_float(__float_as_int(x) & 0x7fffffff);
    bool beyond = F::has_inf ? magnitude >= 61440.0f : magnitude > 464.0f;
    return beyond ? overflow_code<F, R, false>(bits<u32>(x) >> 31, false) : code;
  }
#endif
  return encode<F, R, Saturate>(x);
}

}  // namespace ww
