// Conversions between formats, exactly as the language defines them.
#pragma once
#include "core.cuh"

namespace ww {

DEVICE float f32_from_f32(float x) { return x; }
DEVICE float f32_from_f16(f16 x) { return f32_of_f16_bits(bits<u16>(x)); }
DEVICE float f32_from_bf16(bf16 x) { return bits<float>((u32)bits<u16>(x) << 16); }
DEVICE float f32_from_fp8e4m3(fp8e4m3 x) { return decode_fp8<fp8e4m3_format>(bits<u8>(x)); }
DEVICE float f32_from_fp8e5m2(fp8e5m2 x) { return decode_fp8<fp8e5m2_format>(bits<u8>(x)); }
DEVICE float f32_from_fp8e4m3fnuz(u8 x) { return decode<fp8e4m3fnuz_format>(x); }
DEVICE float f32_from_fp8e5m2fnuz(u8 x) { return decode<fp8e5m2fnuz_format>(x); }

template <Rounding R, bool Saturate> DEVICE float f32_from(float x) {
  constexpr float largest = 0x1.fffffep127f;
  return Saturate && fabsf(x) > largest ? copysignf(largest, x) : x;  // what is beyond: infinities
}
template <Rounding R, bool Saturate> DEVICE f16 f16_from(float x) {
  u16 code;
  if constexpr (R == rne && !Saturate) asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(x));
  else code = encode<f16_format, R, Saturate>(x);
  return bits<f16>(code);
}
template <Rounding R, bool Saturate> DEVICE bf16 bf16_from(float x) {
  u16 code;
  if constexpr (R == rne && !Saturate) asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(code) : "f"(x));
  else code = encode<bf16_format, R, Saturate>(x);
  return bits<bf16>(code);
}
template <Rounding R, bool S> DEVICE fp8e4m3 fp8e4m3_from(float x) {
  return bits<fp8e4m3>(encode_fp8<fp8e4m3_format, R, S>(x));
}
template <Rounding R, bool S> DEVICE fp8e5m2 fp8e5m2_from(float x) {
  return bits<fp8e5m2>(encode_fp8<fp8e5m2_format, R, S>(x));
}
template <Rounding R, bool S> DEVICE u8 fp8e4m3fnuz_from(float x) { return encode<fp8e4m3fnuz_format, R, S>(x); }
template <Rounding R, bool S> DEVICE u8 fp8e5m2fnuz_from(float x) { return encode<fp8e5m2fnuz_format, R, S>(x); }

// A small float's own rounding of a constant or of an f32 result.
template <class T> DEVICE T to(float x);
template <> DEVICE float to<float>(float x) { return x; }
template <> DEVICE f16 to<f16>(float x) { return f16_from<rne, false>(x); }
template <> DEVICE bf16 to<bf16>(float x) { return bf16_from<rne, false>(x); }

// An integer as f32 rounded to odd: rounding that to a shorter format in any mode is rounding the integer.
DEVICE float odd_from_integer(long x) {
  float f = __ll2float_rz(x);
  return (long)f == x ? f : bits<float>(bits<u32>(f) | 1);
}

// Integers as f32 in a directed rounding; rta differs from nearest even on ties alone.
template <Rounding R> DEVICE float f32_from_integer(long x) {
  if constexpr (R == rtz) return __ll2float_rz(x);
  else if constexpr (R == rtp) return __ll2float_ru(x);
  else if constexpr (R == rtn) return __ll2float_rd(x);
  else if constexpr (R == rne) return __ll2float_rn(x);
  else {
    float toward = __ll2float_rz(x);
    long rest = x - (long)toward;
    float next = bits<float>(bits<u32>(toward) + 1);
    u64 gap = next >= 0x1p63f ? 1ul << 39 : (u64)((long)next - (long)toward);
    if (x < 0) {
      gap = next <= -0x1p63f ? 1ul << 39 : (u64)((long)toward - (long)next);
      rest = -rest;
    }
    return rest != 0 && 2 * (u64)rest >= gap ? next : toward;
  }
}

template <Rounding R> DEVICE float round_float(float x) {
  if (R == rne) return rintf(x);
  if (R == rtp) return ceilf(x);
  if (R == rtn) return floorf(x);
  if (R == rta) {
    float whole = truncf(x);
    return fabsf(x - whole) >= 0.5f ? whole + copysignf(1.0f, x) : whole;
  }
  return truncf(x);
}

// Rounded, clamped to the type's range, NaN to 0: what cvt to s32 does in one instruction.
template <class T, Rounding R> DEVICE T integer_from(float x) {
  constexpr T largest = (T)((1ul << (8 * sizeof(T) - 1)) - 1), least = -largest - 1;
  if constexpr (sizeof(T) < 8 && R != rta) {
    int whole = R == rne ? __float2int_rn(x) : R == rtp ? __float2int_ru(x) : R == rtn ? __float2int_rd(x)
                                                                                       : __float2int_rz(x);
    return whole > largest ? largest : whole < least ? least : (T)whole;
  }
  float whole = round_float<R>(x);
  if (x != x) return 0;
  if (whole >= -(float)least) return largest;
  if (whole <= (float)least) return least;
  return (T)whole;
}

template <class To, class From> DEVICE To saturated(From x) {
  constexpr long largest = (long)((1ul << (8 * sizeof(To) - 1)) - 1);
  long wide = x;
  return wide > largest ? largest : wide < -largest - 1 ? -largest - 1 : wide;
}

}  // namespace ww
