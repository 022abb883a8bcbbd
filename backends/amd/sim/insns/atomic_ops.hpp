// The read-modify-write functions shared by LDS, global, buffer and flat atomics.
#pragma once

#include <algorithm>
#include <cmath>

#include "../arith/floats.hpp"
#include "../core/types.hpp"

namespace amdsim {

// new value from (old memory value, data); cmpswap has its own code.
using Atomic32 = u32 (*)(u32 old, u32 data);
using Atomic64 = u64 (*)(u64 old, u64 data);

namespace atomic_ops {

template <class T, class U, auto F>
U apply(U old, U data) {
  return bits<U>(static_cast<T>(F(bits<T>(old), bits<T>(data))));
}

template <class T>
T add(T a, T b) {
  return T(a + b);
}
inline i32 add_wrap(i32 a, i32 b) { return i32(u32(a) + u32(b)); }
template <class T>
T sub(T a, T b) {
  return T(a - b);
}
template <class T>
T rsub(T a, T b) {
  return T(b - a);
}
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  return b > a ? b : a;
}
template <class T>
T swap(T, T b) {
  return b;
}
template <class T>
T bit_and(T a, T b) {
  return a & b;
}
template <class T>
T bit_or(T a, T b) {
  return a | b;
}
template <class T>
T bit_xor(T a, T b) {
  return a ^ b;
}
template <class T>
T inc(T a, T limit) {
  return a >= limit ? 0 : a + 1;
}
template <class T>
T dec(T a, T limit) {
  return a == 0 || a > limit ? limit : a - 1;
}
// IEEE minimum/maximum number: a quiet NaN loses against a number.
template <class T>
T fmin(T a, T b) {
  return std::fmin(a, b);
}
template <class T>
T fmax(T a, T b) {
  return std::fmax(a, b);
}

inline u32 pk_add_f16(u32 a, u32 b) {
  auto half = [](u32 x, u32 y) { return u32(arith::quick_add(f16{u16(x)}, f16{u16(y)}).bits); };
  return half(a, b) | half(a >> 16, b >> 16) << 16;
}
inline u32 pk_add_bf16(u32 a, u32 b) {
  auto half = [](u32 x, u32 y) { return u32(arith::to_bf16(arith::to_f32(bf16{u16(x)}) + arith::to_f32(bf16{u16(y)})).bits); };
  return half(a, b) | half(a >> 16, b >> 16) << 16;
}

struct Op32 {
  const char* name;
  Atomic32 f;
};
struct Op64 {
  const char* name;
  Atomic64 f;
};

}  // namespace atomic_ops
}  // namespace amdsim
