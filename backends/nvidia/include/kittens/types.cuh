// Element types and their packed forms, with the names of ThunderKittens 2.0.
#pragma once
#include "../warpwave/formats.cuh"

namespace kittens {

using ww::bits;
using ww::u16;
using ww::u32;
using ww::u64;
using ww::u8;

struct alignas(2) bf16 {
  u16 __x;
  bf16() = default;
  DEVICE explicit bf16(float f) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(__x) : "f"(f)); }
  DEVICE explicit operator float() const { return bits<float>((u32)__x << 16); }
};

struct alignas(2) half {
  u16 __x;
  half() = default;
  DEVICE explicit half(float f) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(__x) : "f"(f)); }
  DEVICE explicit operator float() const {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(__x));
    return f;
  }
};

// Arithmetic in the format itself, each operation rounded once.
#define KITTENS_HALF_OPERATOR(symbol, instruction) \
  DEVICE half operator symbol(half a, half b) { \
    half c; \
    asm(instruction ".f16 %0, %1, %2;" : "=h"(c.__x) : "h"(a.__x), "h"(b.__x)); \
    return c; \
  }
KITTENS_HALF_OPERATOR(+, "add.rn")
KITTENS_HALF_OPERATOR(-, "sub.rn")
KITTENS_HALF_OPERATOR(*, "mul.rn")
#undef KITTENS_HALF_OPERATOR
// The f32 quotient has more than twice the bits, so rounding it again changes nothing.
DEVICE half operator/(half a, half b) { return half(__fdiv_rn((float)a, (float)b)); }

// Through f32: with more than twice the bits and two more, the second rounding never spoils the first.
DEVICE bf16 operator+(bf16 a, bf16 b) { return bf16(__fadd_rn((float)a, (float)b)); }
DEVICE bf16 operator-(bf16 a, bf16 b) { return bf16(__fsub_rn((float)a, (float)b)); }
DEVICE bf16 operator*(bf16 a, bf16 b) { return bf16(__fmul_rn((float)a, (float)b)); }
DEVICE bf16 operator/(bf16 a, bf16 b) { return bf16(__fdiv_rn((float)a, (float)b)); }

// fp8 of the OCP standard; conversions to it saturate.
#define KITTENS_FP8(name, format) \
  struct name { \
    u8 __x; \
    name() = default; \
    DEVICE explicit name(float f) : __x(ww::encode_fp8<ww::format, ww::rne, true>(f)) {} \
    DEVICE explicit operator float() const { return ww::decode_fp8<ww::format>(__x); } \
  };
KITTENS_FP8(fp8e4m3, fp8e4m3_format)
KITTENS_FP8(fp8e5m2, fp8e5m2_format)
#undef KITTENS_FP8
typedef signed char int8;

struct alignas(4) bf16_2 { bf16 x, y; };
struct alignas(4) half_2 { half x, y; };
struct alignas(2) fp8e4m3_2 { u16 __x; };
struct alignas(2) fp8e5m2_2 { u16 __x; };
struct alignas(4) fp8e4m3_4 { u32 __x; };
struct alignas(4) fp8e5m2_4 { u32 __x; };
struct alignas(4) int8_4 { u32 __x; };
using ::float2;
using ::float4;

namespace base_types {

// How many values one packed register type holds.
template <class T> struct packing {
  __device__ static constexpr int num() { return 1; }
  using unpacked_type = T;
  using packed_type = T;
};
#define KITTENS_PACKING(T, T2, n) \
  template <> struct packing<T> { \
    __device__ static constexpr int num() { return 1; } \
    using unpacked_type = T; \
    using packed_type = T2; \
  }; \
  template <> struct packing<T2> { \
    __device__ static constexpr int num() { return n; } \
    using unpacked_type = T; \
    using packed_type = T2; \
  };
KITTENS_PACKING(float, float2, 2)
KITTENS_PACKING(bf16, bf16_2, 2)
KITTENS_PACKING(half, half_2, 2)
KITTENS_PACKING(int, int2, 2)
KITTENS_PACKING(fp8e4m3, fp8e4m3_4, 4)
KITTENS_PACKING(fp8e5m2, fp8e5m2_4, 4)
KITTENS_PACKING(int8, int8_4, 4)
#undef KITTENS_PACKING

template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;

template <class T> using unpacked = typename packing<T>::unpacked_type;
template <class T> using packed = typename packing<T>::packed_type;

template <bool Which, class A, class B> struct choice { using type = A; };
template <class A, class B> struct choice<false, A, B> { using type = B; };
template <bool Which, class A, class B> using either = typename choice<Which, A, B>::type;

// Between element types, rounded to nearest even; fp8 saturates, as in upstream.
template <class To, class From> DEVICE To convert_to(From x) {
  if constexpr (same<To, From>) return x;
  else if constexpr (!same<From, float>) return convert_to<To>((float)x);
  else return To(x);
}

template <class T> struct constants {
  DEVICE static T zero() { return convert_to<T>(0.0f); }
  DEVICE static T one() { return convert_to<T>(1.0f); }
  DEVICE static T pos_infty() { return convert_to<T>(__int_as_float(0x7f800000)); }
  DEVICE static T neg_infty() { return convert_to<T>(__int_as_float(0xff800000)); }
};

}  // namespace base_types
}  // namespace kittens
