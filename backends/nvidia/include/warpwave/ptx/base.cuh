// What every header here starts from: unsigned types, bit casts, unrolled loops. Needs no host headers.
#pragma once

#define DEVICE __device__ __forceinline__
// A loop whose trip count is known when compiling.
#define EACH(i, n) _Pragma("unroll") for (int i = 0; i < (n); ++i)

namespace ww {

typedef unsigned int u32;
typedef unsigned long u64;
typedef unsigned short u16;
typedef unsigned char u8;

template <class To, class From> DEVICE To bits(From x) { return __builtin_bit_cast(To, x); }

namespace ptx {

// Address of shared memory as the instructions take it.
DEVICE u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
DEVICE u64 global_address(const void *p) { return (u64)__cvta_generic_to_global(p); }

// The element formats of the matrix instructions, as PTX spells them.
enum Format { F16, BF16, TF32, E4M3, E5M2, S8, U8 };
template <Format> struct spelling;
template <> struct spelling<F16> { static constexpr char text[] = "f16"; static constexpr int bytes = 2; };
template <> struct spelling<BF16> { static constexpr char text[] = "bf16"; static constexpr int bytes = 2; };
template <> struct spelling<TF32> { static constexpr char text[] = "tf32"; static constexpr int bytes = 4; };
template <> struct spelling<E4M3> { static constexpr char text[] = "e4m3"; static constexpr int bytes = 1; };
template <> struct spelling<E5M2> { static constexpr char text[] = "e5m2"; static constexpr int bytes = 1; };
template <> struct spelling<S8> { static constexpr char text[] = "s8"; static constexpr int bytes = 1; };
template <> struct spelling<U8> { static constexpr char text[] = "u8"; static constexpr int bytes = 1; };

}  // namespace ptx
}  // namespace ww
