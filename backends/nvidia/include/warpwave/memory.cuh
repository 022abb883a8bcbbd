// Global memory: tensors as arguments, predicated accesses of 1 to 16 bytes, atomic additions.
#pragma once
#include "convert.cuh"
#include "ptx/cp_async.cuh"

namespace ww {

// A global tensor argument; extents and strides count elements.
template <class T, int Rank> struct tensor {
  T *data;
  long strides[Rank];
  int extents[Rank];
  DEVICE T *at(long element) const { return data + element; }
};

// A coordinate counted in tiles, in elements. What 32 bits cannot hold is outside every tensor, and stays so.
DEVICE int scaled_coordinate(int x, int extent) {
  const int limit = 0x7fffffff / extent;
  return x > limit ? 0x7fffffff : x < -limit ? -0x7fffffff - 1 : x * extent;
}
DEVICE int scaled_coordinate(long x, int extent) {
  return scaled_coordinate(x > 0x7fffffffl ? 0x7fffffff : x < -0x7fffffffl ? -0x7fffffff : (int)x, extent);
}

template <int Bytes> struct word_of;
template <> struct word_of<1> { typedef u8 type; };
template <> struct word_of<2> { typedef u16 type; };
template <> struct word_of<4> { typedef u32 type; };
template <> struct word_of<8> { typedef uint2 type; };
template <> struct word_of<16> { typedef uint4 type; };
template <class T> using word = typename word_of<sizeof(T)>::type;

template <class T> DEVICE T load_if(bool inside, const T *p, T fill) {
  T x = fill;
  if (inside) x = *p;
  return x;
}

// N neighbours in one access of 2 to 16 bytes, aligned to as many.
template <class T, int N> DEVICE vec<T, N> load_vector_if(bool inside, const T *p, T fill) {
  vec<T, N> x;
  if constexpr (N == 1) x = fill;
  else EACH(i, N) x[i] = fill;
  word<vec<T, N>> w = bits<word<vec<T, N>>>(x);
  if (inside) w = *(const word<vec<T, N>> *)p;
  return bits<vec<T, N>>(w);
}
template <class T, class V> DEVICE void store_vector(T *p, V x) { *(word<V> *)p = bits<word<V>>(x); }

// The aligned 16 bytes at `from`, of which `bytes` are read and the rest is zero, to shared memory: by cp.async whole or
// not at all, element by element at the end of a row. `inside` is any address that may be read.
template <class T> DEVICE void copy_unit(u8 *to, u64 from, int bytes, const T *inside) {
  if (bytes <= 0 || bytes >= 16) {
    const u64 source = bytes > 0 ? from : (u64)inside / 16 * 16;
    ptx::cp_async<16>(ptx::shared_address(to), (const void *)source, bytes > 0 ? 16 : 0);
  } else {
    vec<T, 16 / sizeof(T)> x;
    EACH(i, 16 / (int)sizeof(T)) x[i] = i * (int)sizeof(T) < bytes ? ((const T *)from)[i] : zero<T>();
    *(uint4 *)to = bits<uint4>(x);
  }
}

// N times 16 bytes that begin `skipped` (0 to 15) bytes inside two neighbouring units at from(i), to to(i). A warp's
// lanes skip the same, so that words are chosen by a branch.
template <int Words, int N, class From, class To> DEVICE void shift_words(int bits, From from, To to) {
  constexpr int together = N % 4 == 0 ? 4 : N % 3 == 0 ? 3 : N % 2 == 0 ? 2 : 1;  // reads that wait for no write
  EACH(group, N / together) {
    uint4 a[together], b[together];
    EACH(i, together) a[i] = from(group * together + i)[0], b[i] = from(group * together + i)[1];
    EACH(i, together) {
      const u32 x[8] = {a[i].x, a[i].y, a[i].z, a[i].w, b[i].x, b[i].y, b[i].z, b[i].w};
      vec<u32, 4> y;
      EACH(j, 4) y[j] = __funnelshift_r(x[j + Words], x[j + Words + 1], bits);
      *to(group * together + i) = ww::bits<uint4>(y);
    }
  }
}
template <int N, class From, class To> DEVICE void shift_units(int skipped, From from, To to) {
  const int words = __shfl_sync(~0u, skipped >> 2, 0), bits = skipped % 4 * 8;
  if (words == 0) shift_words<0, N>(bits, from, to);
  else if (words == 1) shift_words<1, N>(bits, from, to);
  else if (words == 2) shift_words<2, N>(bits, from, to);
  else shift_words<3, N>(bits, from, to);
}

template <class T> DEVICE void add_by_swapping(T *p, T x) {
  u32 *around = (u32 *)((u64)p & ~3ul);
  int shift = ((u64)p & 2) * 8;
  u32 old = *(volatile u32 *)around, seen;
  do {
    seen = old;
    T sum = to<T>((float)bits<T>((u16)(seen >> shift)) + (float)x);
    old = atomicCAS(around, seen, (seen & ~(0xffffu << shift)) | (u32)bits<u16>(sum) << shift);
  } while (old != seen);
}

// At device scope, relaxed; each element rounded to its own format.
DEVICE void atomic_add(float *p, float x) { atomicAdd(p, x); }
DEVICE void atomic_add(int *p, int x) { atomicAdd(p, x); }
DEVICE void atomic_add(long *p, long x) { atomicAdd((unsigned long long *)p, (unsigned long long)x); }
DEVICE void atomic_add(f16 *p, f16 x) {
  asm volatile("red.global.add.noftz.f16 [%0], %1;" ::"l"(ptx::global_address(p)), "h"(bits<u16>(x)) : "memory");
}
DEVICE void atomic_add(bf16 *p, bf16 x) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.noftz.bf16 [%0], %1;" ::"l"(ptx::global_address(p)), "h"(bits<u16>(x)) : "memory");
#else
  add_by_swapping(p, x);
#endif
}

}  // namespace ww
