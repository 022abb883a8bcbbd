// Types of the generated code: formats by the language's names, vectors, register tiles, lanes.
#pragma once
#include <kittens.cuh>

#include "formats.cuh"

#define SHARED __shared__
#define GLOBAL
#define LAMBDA
#define TABLE static __device__ constexpr
// A table of `count` integers whose entry i is an expression.
#define PLACES(name, count, place) \
  static __device__ constexpr struct name##_type { \
    int entries[count]; \
    DEVICE constexpr name##_type() : entries{} { \
      for (int i = 0; i < count; ++i) entries[i] = place; \
    } \
    DEVICE constexpr int operator[](int i) const { return entries[i]; } \
  } name{};
#define KERNEL(threads, blocks) extern "C" __global__ __launch_bounds__(threads, blocks)
#define F32_NAN __int_as_float(0x7fc00000)
#define F32_INF __int_as_float(0x7f800000)

namespace ww {

typedef kittens::half f16;
using kittens::bf16;
using kittens::fp8e4m3;
using kittens::fp8e5m2;
typedef u8 fp8e4m3fnuz, fp8e5m2fnuz;

// -- vectors and register tiles ------------------------------------------------------------------------

template <class T, int N> struct alignas(sizeof(T) * N > 16 ? 16 : sizeof(T) * N) vector_of {
  T e[N];
  DEVICE T &operator[](int i) { return e[i]; }
  DEVICE const T &operator[](int i) const { return e[i]; }
};
template <class T, int N> struct vector_type { typedef vector_of<T, N> type; };
template <class T> struct vector_type<T, 1> { typedef T type; };
template <class T, int N> using vec = typename vector_type<T, N>::type;

#define WW_VECTOR_OPERATOR(symbol) \
  template <class T, int N> DEVICE vector_of<T, N> operator symbol(vector_of<T, N> a, vector_of<T, N> b) { \
    vector_of<T, N> c; \
    EACH(i, N) c.e[i] = a.e[i] symbol b.e[i]; \
    return c; \
  }
WW_VECTOR_OPERATOR(+)
WW_VECTOR_OPERATOR(-)
WW_VECTOR_OPERATOR(*)
#undef WW_VECTOR_OPERATOR

// The values that one lane holds of a tile: N items in vectors of W.
template <class T_, int N, int W = 1> struct tile {
  using T = T_;
  static constexpr int items = N, width = W;
  vec<T, W> v[N / W];
  DEVICE T get(int i) const {
    if constexpr (W == 1) return v[i];
    else return v[i / W].e[i % W];
  }
  DEVICE void set(int i, T x) {
    if constexpr (W == 1) v[i] = x;
    else v[i / W].e[i % W] = x;
  }
};

template <class T> DEVICE T zero() {
  if constexpr (sizeof(T) == 1) return bits<T>((u8)0);
  else if constexpr (sizeof(T) == 2) return bits<T>((u16)0);
  else if constexpr (sizeof(T) == 4) return bits<T>(0u);
  else return bits<T>((u64)0);
}

// The items keep their values and their place in the program: before wgmma reads them, after it wrote them.
template <int N, int W> DEVICE void pin(tile<float, N, W> &t) {
  EACH(i, N / W) EACH(j, W) asm volatile("" : "+f"(t.v[i].e[j])::"memory");
}
template <int N, int W> DEVICE void pin(tile<int, N, W> &t) {
  EACH(i, N / W) EACH(j, W) asm volatile("" : "+r"(t.v[i].e[j])::"memory");
}

// A word of elements of `Bits` with only the first `count` kept; the others are zero.
template <int Bits> DEVICE u32 keep_elements(u32 word, int count) {
  return count <= 0 ? 0 : count * Bits >= 32 ? word : word & ((1u << count * Bits) - 1);
}

// -- lanes ---------------------------------------------------------------------------------------------

DEVICE int lane_id() {
  int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

// The value of lane l ^ Mask.
template <int Mask, class T> DEVICE T shuffle_xor(T x) {
  if constexpr (sizeof(T) == 4) return bits<T>(__shfl_xor_sync(0xffffffffu, bits<u32>(x), Mask));
  else if constexpr (sizeof(T) == 8) {
    u64 b = bits<u64>(x);
    u32 high = __shfl_xor_sync(0xffffffffu, (u32)(b >> 32), Mask);
    return bits<T>((u64)high << 32 | __shfl_xor_sync(0xffffffffu, (u32)b, Mask));
  } else if constexpr (sizeof(T) == 2) return bits<T>((u16)__shfl_xor_sync(0xffffffffu, (u32)bits<u16>(x), Mask));
  else return bits<T>((u8)__shfl_xor_sync(0xffffffffu, (u32)bits<u8>(x), Mask));
}

// A condition that all lanes share.
DEVICE bool uniform(bool x) { return x; }

}  // namespace ww
