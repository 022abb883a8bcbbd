// Arithmetic and functions with the accuracy of the contract (tiles/reference/accuracy.py). Compile without
// contraction of a * b + c and without fast-math.
#pragma once
#include "approximate.cuh"
#include "convert.cuh"

namespace ww {

// -- arithmetic ----------------------------------------------------------------------------------------

// 0 counts as 1, and dividing by -1 negates: no overflow, and the same result on every target.
template <class T> DEVICE T safe_divisor(T b) { return b == 0 || b == -1 ? 1 : b; }
template <class T> DEVICE T floor_div(T a, T b) {
  T d = safe_divisor(b), q = a / d, r = a % d;
  return b == -1 ? (T)(0 - (u64)a) : (T)(q - (r != 0 && (r < 0) != (d < 0)));
}
template <class T> DEVICE T floor_mod(T a, T b) {
  T d = safe_divisor(b), r = a % d;
  return r != 0 && (r < 0) != (d < 0) ? r + d : r;
}

// IEEE 754-2019 maximum and minimum (NaN propagates, -0 < +0), and the forms that ignore one NaN.
#define WW_EXTREME(name, instruction) \
  DEVICE float name(float a, float b) { \
    float c; \
    asm(instruction ".f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b)); \
    return c; \
  }
WW_EXTREME(maximum, "max.NaN")
WW_EXTREME(minimum, "min.NaN")
WW_EXTREME(maximum_number, "max")
WW_EXTREME(minimum_number, "min")
#undef WW_EXTREME

template <class T> DEVICE T larger(T a, T b) { return a > b ? a : b; }
template <class T> DEVICE T smaller(T a, T b) { return a < b ? a : b; }

DEVICE float abs_(float x) { return fabsf(x); }
DEVICE float floor_(float x) { return floorf(x); }
DEVICE float ceil_(float x) { return ceilf(x); }
DEVICE float round_(float x) { return rintf(x); }
DEVICE float trunc_(float x) { return truncf(x); }

DEVICE float fma_(float a, float b, float c) { return __fmaf_rn(a, b, c); }
DEVICE f16 fma_(f16 a, f16 b, f16 c) {
  u16 d;
  asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(d) : "h"(bits<u16>(a)), "h"(bits<u16>(b)), "h"(bits<u16>(c)));
  return bits<f16>(d);
}
template <class T, int N> DEVICE vector_of<T, N> fma_(vector_of<T, N> a, vector_of<T, N> b, vector_of<T, N> c) {
  vector_of<T, N> d;
  EACH(i, N) d.e[i] = fma_(a.e[i], b.e[i], c.e[i]);
  return d;
}

// a * b + c rounded to odd in f32, for f16 and bf16 operands: rounding it to their format is the only rounding.
DEVICE float fma_odd(float a, float b, float c) {
  float toward = __fmaf_rz(a, b, c);
  bool exact = __fmaf_rd(a, b, c) == __fmaf_ru(a, b, c);
  return exact ? toward : bits<float>(bits<u32>(toward) | 1);
}

// -- functions -----------------------------------------------------------------------------------------

DEVICE float exp_(float x) { return expf(x); }
DEVICE float exp2_(float x) { return ex2(x); }
DEVICE float log_(float x) { return logf(x); }
DEVICE float log2_(float x) { return log2f(x); }
DEVICE float sqrt_(float x) { return __fsqrt_rn(x); }
DEVICE float rsqrt_(float x) { return rsqrt_approx(x); }
DEVICE float rcp_(float x) { return rcp_approx(x); }
DEVICE float tanh_(float x) { return tanhf(x); }
DEVICE float erf_(float x) { return erff(x); }

// 1 / (1 + e^-x); far left, where e^-x would overflow, that is e^x.
DEVICE float sigmoid_(float x) {
  bool far = x < -80.0f;
  float e = expf(far ? x : -x);
  return far ? e : __frcp_rn(1.0f + e);
}
// x / (1 + e^-x). Far left that is x e^x, and e^x would be subnormal or 0 where x e^x is not yet: there e^(x + 64),
// then e^-64.
DEVICE float silu_(float x) {
  bool far = x < -80.0f;
  float e = expf(far ? x + 64.0f : -x);
  return far ? x * e * 0x1.969d48p-93f : __fdiv_rn(x, 1.0f + e);
}
DEVICE float gelu_(float x) { return 0.5f * x * (1.0f + erff(x * 0x1.6a09e6p-1f)); }
DEVICE float gelu_tanh_(float x) {
  float u = 0x1.988454p-1f * (x + 0.044715f * x * x * x);
  return x * rcp_approx(1.0f + expf(-2.0f * u));
}

// -- random numbers ------------------------------------------------------------------------------------

// Philox4x32-10 (Salmon et al., SC'11): blocks of four words for counters that differ in their first two words, round by
// round, since the schedule of keys is common to them; and one word of one block.
template <int N>
DEVICE void philox_blocks(vec<u32, 4> (&words)[N], const u32 (&c0)[N], const u32 (&c1)[N], u64 offset, u64 seed) {
  u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
  EACH(i, N) words[i] = vec<u32, 4>{c0[i], c1[i], (u32)offset, (u32)(offset >> 32)};
  EACH(round, 10) {
    EACH(i, N) {
      vec<u32, 4> &x = words[i];
      const u64 p0 = (u64)0xD2511F53u * x[0], p1 = (u64)0xCD9E8D57u * x[2];
      x = vec<u32, 4>{(u32)(p1 >> 32) ^ x[1] ^ k0, (u32)p1, (u32)(p0 >> 32) ^ x[3] ^ k1, (u32)p0};
    }
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
}
DEVICE u32 philox(u32 c0, u32 c1, u64 offset, u64 seed, int word) {
  vec<u32, 4> words[1];
  philox_blocks(words, {c0}, {c1}, offset, seed);
  const vec<u32, 4> x = words[0];
  return word & 2 ? (word & 1 ? x[3] : x[2]) : (word & 1 ? x[1] : x[0]);
}

}  // namespace ww
