// Element types and their packed forms, with the names of ThunderKittens 2.0.
#pragma once
#include "../warpwave/ptx/base.cuh"

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

// fp8 of the OCP standard: codes here; conversions are in conversions.cuh and warpwave/convert.cuh.
struct fp8e4m3 { u8 __x; };
struct fp8e5m2 { u8 __x; };

struct alignas(4) bf16_2 { bf16 x, y; };
struct alignas(4) half_2 { half x, y; };
struct alignas(2) fp8e4m3_2 { u16 __x; };
struct alignas(2) fp8e5m2_2 { u16 __x; };
struct alignas(4) fp8e4m3_4 { u32 __x; };
struct alignas(4) fp8e5m2_4 { u32 __x; };
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
#undef KITTENS_PACKING

template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;

template <class T> using unpacked = typename packing<T>::unpacked_type;
template <class T> using packed = typename packing<T>::packed_type;

// f32 to and from each unpacked type; other conversions go through f32, exactly.
template <class T> DEVICE T from_float(float x) {
  if constexpr (same<T, int>) return __float2int_rn(x);
  else return T(x);
}

}  // namespace base_types
}  // namespace kittens
