// Warpwave device prelude for gfx942 and gfx950: types, tiles in registers, and the language's functions.
// Needs no headers; compiles under hipcc and under plain clang -x hip.

#define DEVICE __attribute__((device, always_inline)) inline
#define SHARED __attribute__((shared))
// Accesses are as aligned as their types say: the compiler must not merge narrow ones into wide unaligned ones.
#define KERNEL(threads, waves)                                                                          \
  extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads), amdgpu_waves_per_eu(waves), \
                            target("no-unaligned-access-mode")))
#define EACH_FROM(i, from, n) _Pragma("clang loop unroll(full)") for (int i = (from); i < (from) + (n); ++i)
#define EACH(i, n) EACH_FROM(i, 0, n)

typedef unsigned int u32;
typedef unsigned long u64;
typedef unsigned short u16;
typedef unsigned char u8;
typedef _Float16 f16;
typedef __bf16 bf16;
typedef u8 fp8e4m3, fp8e5m2, fp8e4m3fnuz, fp8e5m2fnuz;

template <class To, class From> DEVICE To bits(From x) { return __builtin_bit_cast(To, x); }

// The value, in a vector register that the optimiser does not know the origin of: it neither computes the value
// again where it is used, nor makes a branch of the selection between two of them.
template <class T> DEVICE T in_register(T x) {
  asm("" : "+v"(x));
  return x;
}

// The same, in a register that only matrix and memory instructions use: for tiles as long as all of those.
template <class T> DEVICE T in_accumulation_register(T x) {
  asm("" : "+a"(x));
  return x;
}

// A value that all lanes share, in a scalar register: divisions leave theirs in vector registers, and with it all
// that is computed from them.
DEVICE int same_for_all(int x) { return __builtin_amdgcn_readfirstlane(x); }
DEVICE u64 same_for_all(u64 x) { return (u64)(u32)same_for_all((int)(x >> 32)) << 32 | (u32)same_for_all((int)x); }

// -- vectors and register tiles ------------------------------------------------------------------------

template <class T, int N> struct vector_of { typedef T type __attribute__((ext_vector_type(N))); };
template <class T> struct vector_of<T, 1> { typedef T type; };
template <class T, int N> using vec = typename vector_of<T, N>::type;

// The values that one lane holds of a tile: N items in hardware vectors of W.
template <class T, int N, int W = 1> struct tile {
  static constexpr int items = N, width = W;
  vec<T, W> v[N / W];
  DEVICE T get(int i) const {
    if constexpr (W == 1) return v[i];
    else return v[i / W][i % W];
  }
  DEVICE void set(int i, T x) {
    if constexpr (W == 1) v[i] = x;
    else v[i / W][i % W] = x;
  }
};

// Items first, first + step, ... of a tile. Bytes are picked from whole registers.
template <class T, int N, class Tile> DEVICE vec<T, N> column(const Tile &x, int first, int step) {
  if constexpr (sizeof(T) == 1 && N == 4 && Tile::width % 4 == 0) {
    u32 word[N];
    EACH(i, N) {
      const int item = first + i * step, whole = item - item % 4;
      word[i] = bits<vec<u32, Tile::width / 4>>(x.v[whole / Tile::width])[whole % Tile::width / 4];
    }
    const u32 picked = first % 4 | (first % 4 + 4) << 8;  // byte first % 4 of the second word, then of the first
    const u32 low = __builtin_amdgcn_perm(word[1], word[0], picked), high = __builtin_amdgcn_perm(word[3], word[2], picked);
    return bits<vec<T, N>>(__builtin_amdgcn_perm(high, low, 0x05040100));
  } else {
    vec<T, N> y;
    EACH(i, N) y[i] = x.get(first + i * step);
    return y;
  }
}

// N elements of a vector from `start` on, whole registers where they are.
template <class T, int N, class V> DEVICE vec<T, N> part(V x, int start) {
  if constexpr (N == 1) return x[start];
  else if constexpr (sizeof(T) == 4 || sizeof(T) * N % 4) {
    vec<T, N> y;
    EACH(i, N) y[i] = x[start + i];
    return y;
  } else return bits<vec<T, N>>(part<u32, (int)sizeof(T) * N / 4>(bits<vec<u32, (int)sizeof(V) / 4>>(x), start * (int)sizeof(T) / 4));
}

// -- lanes ---------------------------------------------------------------------------------------------

DEVICE int lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }

// Permutations within 16 lanes: no lane keeps an old value, so that the compiler can make it a part of the next operation.
template <int Control> DEVICE u32 dpp(u32 x) { return __builtin_amdgcn_mov_dpp(x, Control, 0xf, 0xf, true); }

// The value of lane l ^ Mask, for a power of two. Within 16 lanes by DPP, beyond by the LDS crossbar.
template <int Mask> DEVICE u32 lane_xor(u32 x) {
  if constexpr (Mask == 1) return dpp<0xb1>(x);       // quad_perm 1,0,3,2
  else if constexpr (Mask == 2) return dpp<0x4e>(x);  // quad_perm 2,3,0,1
  else if constexpr (Mask == 4) return dpp<0x1b>(dpp<0x141>(x));  // half mirror is ^7, quad_perm 3,2,1,0 is ^3
  else if constexpr (Mask == 8) return dpp<0x128>(x);  // row_ror:8
#if defined(__gfx950__)
  else if constexpr (Mask == 16) {
    auto r = __builtin_amdgcn_permlane16_swap(x, x, false, false);
    return lane_id() & 16 ? r[0] : r[1];
  } else {
    auto r = __builtin_amdgcn_permlane32_swap(x, x, false, false);
    return lane_id() & 32 ? r[0] : r[1];
  }
#else
  else return __builtin_amdgcn_ds_bpermute((lane_id() ^ Mask) << 2, x);
#endif
}

template <int Mask, class T> DEVICE T shuffle_xor(T x) {
  if constexpr (sizeof(T) == 4) return bits<T>(lane_xor<Mask>(bits<u32>(x)));
  else if constexpr (sizeof(T) == 8) {
    u64 b = bits<u64>(x);
    return bits<T>((u64)lane_xor<Mask>((u32)(b >> 32)) << 32 | lane_xor<Mask>((u32)b));
  } else if constexpr (sizeof(T) == 2) return bits<T>((u16)lane_xor<Mask>(bits<u16>(x)));
  else return bits<T>((u8)lane_xor<Mask>(bits<u8>(x)));
}

// What op makes of x and the x of lane l ^ Mask. Which of them comes first differs, so op must be commutative; rows
// or halves that are swapped give both, and nothing has to be selected.
template <int Mask, class T, class Op> DEVICE T with_partner(T x, Op op) {
#if defined(__gfx950__)
  if constexpr (sizeof(T) == 4 && Mask == 16) {
    auto r = __builtin_amdgcn_permlane16_swap(bits<u32>(x), bits<u32>(x), false, false);
    return op(bits<T>((u32)r[0]), bits<T>((u32)r[1]));
  } else if constexpr (sizeof(T) == 4 && Mask == 32) {
    auto r = __builtin_amdgcn_permlane32_swap(bits<u32>(x), bits<u32>(x), false, false);
    return op(bits<T>((u32)r[0]), bits<T>((u32)r[1]));
  } else
#endif
    return op(x, shuffle_xor<Mask>(x));
}

// Whether it holds for any lane of the wave; the answer is the same for all.
DEVICE bool any_lane(bool x) { return __builtin_amdgcn_ballot_w64(x) != 0; }

// -- conversions ---------------------------------------------------------------------------------------

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
  if (F::fnuz && code == F::nan) return __builtin_nanf("");
  if (!F::fnuz && magnitude > F::largest) {
    bool infinite = F::has_inf && magnitude == F::largest + 1;
    return infinite ? (sign ? -__builtin_inff() : __builtin_inff()) : __builtin_nanf("");
  }
  u32 field = magnitude >> F::fraction, fraction = magnitude & ((1u << F::fraction) - 1);
  float normal = bits<float>((field + 127 - F::bias) << 23 | fraction << (23 - F::fraction));
  float subnormal = (float)fraction * bits<float>((u32)(127 + 1 - F::bias - F::fraction) << 23);
  float value = field ? normal : subnormal;
  return sign ? -value : value;
}

// Codes of an fp8 format as f16, which holds all of them. e5m2 is the upper half of f16; e4m3 has another bias,
// which a product undoes, also for subnormals, and one NaN, for which the largest exponent is put in.
template <class F> DEVICE u32 f16_pair(u32 codes) {
  if constexpr (F::fraction == 2) return codes << 8;
  const u32 magnitude = codes & 0x7f007f, nan = (magnitude + 0x10001) & 0x800080;
  const vec<_Float16, 2> value = bits<vec<_Float16, 2>>(magnitude << 7) * (vec<_Float16, 2>)(_Float16)256.0f;
  return bits<u32>(value) | (nan << 8) - (nan << 3) | (codes & 0x800080) << 8;
}
template <class F, int N> DEVICE vec<_Float16, N> f16_from_codes(vec<u8, N> x) {
  if constexpr (F::fnuz) {
    vec<_Float16, N> y;
    EACH(i, N) y[i] = (_Float16)decode<F>(x[i]);
    return y;
  } else {
    const vec<u32, N / 4> words = bits<vec<u32, N / 4>>(x);
    vec<u32, N / 2> y;
    EACH(i, N / 2) {
      u32 word;
      if constexpr (N == 4) word = words;
      else word = words[i / 2];
      y[i] = f16_pair<F>(__builtin_amdgcn_perm(0, word, i % 2 ? 0x0c030c02 : 0x0c010c00));
    }
    return bits<vec<_Float16, N>>(y);
  }
}

DEVICE float f32_from_f32(float x) { return x; }
DEVICE float f32_from_f16(_Float16 x) { return (float)x; }
DEVICE float f32_from_bf16(__bf16 x) { return bits<float>((u32)bits<u16>(x) << 16); }
DEVICE float f32_from_fp8e4m3(u8 x) { return decode<fp8e4m3_format>(x); }
DEVICE float f32_from_fp8e5m2(u8 x) { return decode<fp8e5m2_format>(x); }
DEVICE float f32_from_fp8e4m3fnuz(u8 x) { return decode<fp8e4m3fnuz_format>(x); }
DEVICE float f32_from_fp8e5m2fnuz(u8 x) { return decode<fp8e5m2fnuz_format>(x); }

// LLVM fuses a product with its conversion to fma(a, b, +0), which loses the sign of -0: this keeps them apart.
DEVICE _Float16 f16_of(float x) {
  asm("" : "+v"(x));
  return (_Float16)x;
}

template <Rounding R, bool Saturate> DEVICE float f32_from(float x) {
  constexpr float largest = 0x1.fffffep127f;
  return Saturate && __builtin_fabsf(x) > largest ? __builtin_copysignf(largest, x) : x;  // what is beyond: infinities
}
template <Rounding R, bool Saturate> DEVICE _Float16 f16_from(float x) {
  if constexpr (R == rne && !Saturate) return f16_of(x);
  else return bits<_Float16>((u16)encode<f16_format, R, Saturate>(x));
}
template <Rounding R, bool Saturate> DEVICE __bf16 bf16_from(float x) {
  if constexpr (R == rne && !Saturate) return (__bf16)x;
  else return bits<__bf16>((u16)encode<bf16_format, R, Saturate>(x));
}
template <Rounding R, bool S> DEVICE u8 fp8e4m3_from(float x) { return encode<fp8e4m3_format, R, S>(x); }
template <Rounding R, bool S> DEVICE u8 fp8e5m2_from(float x) { return encode<fp8e5m2_format, R, S>(x); }
template <Rounding R, bool S> DEVICE u8 fp8e4m3fnuz_from(float x) { return encode<fp8e4m3fnuz_format, R, S>(x); }
template <Rounding R, bool S> DEVICE u8 fp8e5m2fnuz_from(float x) { return encode<fp8e5m2fnuz_format, R, S>(x); }

// A small float's own rounding of a constant or of an f32 result.
template <class T> DEVICE T to(float x);
template <> DEVICE float to<float>(float x) { return x; }
template <> DEVICE _Float16 to<_Float16>(float x) { return f16_of(x); }
template <> DEVICE __bf16 to<__bf16>(float x) { return (__bf16)x; }

// An integer as f32 rounded to odd: rounding that to a shorter format in any mode is rounding the integer.
DEVICE float odd_from_integer(long x) {
  double d = (double)x;  // exact below 2^53; beyond, the dropped bits are folded in first
  u64 magnitude = x < 0 ? 0 - (u64)x : (u64)x;
  if (magnitude >> 53) {
    u64 low = magnitude & 0x7ff;
    magnitude = (magnitude & ~0x7fful) | (low ? 0x800 : 0);
    d = x < 0 ? -(double)magnitude : (double)magnitude;
  }
  float f = (float)d;
  double error = d - (double)f;
  if (error == 0) return f;
  u32 b = bits<u32>(f);
  bool away = (error < 0) == (d > 0);  // f is beyond d, seen from zero
  b -= away;
  return bits<float>(b | 1);
}

template <Rounding R> DEVICE float round_float(float x) {
  if (R == rne) return __builtin_rintf(x);
  if (R == rtp) return __builtin_ceilf(x);
  if (R == rtn) return __builtin_floorf(x);
  if (R == rta) {
    float whole = __builtin_truncf(x);
    return __builtin_fabsf(x - whole) >= 0.5f ? whole + __builtin_copysignf(1.0f, x) : whole;
  }
  return __builtin_truncf(x);
}

template <class T, Rounding R> DEVICE T integer_from(float x) {
  constexpr T largest = (T)((1ul << (8 * sizeof(T) - 1)) - 1), least = -largest - 1;
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

// -- arithmetic ----------------------------------------------------------------------------------------

// What C++ leaves undefined, a divisor of 0 or an overflow, must not let the compiler drop the bounds checks of
// what was loaded: 0 counts as 1, and dividing by -1 negates.
template <class T> DEVICE T safe_divisor(T b) { return b == 0 || b == -1 ? 1 : b; }
template <class T> DEVICE T floor_div(T a, T b) {
  T d = safe_divisor(b), q = a / d, r = a % d;
  return b == -1 ? (T)(0 - (u64)a) : q - (r != 0 && (r < 0) != (d < 0));
}
template <class T> DEVICE T floor_mod(T a, T b) {
  T d = safe_divisor(b), r = a % d;
  return r != 0 && (r < 0) != (d < 0) ? r + d : r;
}

// IEEE 754-2019 maximum and minimum (NaN propagates, -0 < +0), and the forms that ignore one NaN.
DEVICE float maximum(float a, float b) { return __builtin_elementwise_maximum(a, b); }
DEVICE float minimum(float a, float b) { return __builtin_elementwise_minimum(a, b); }
DEVICE float maximum_number(float a, float b) { return __builtin_elementwise_maximumnum(a, b); }
DEVICE float minimum_number(float a, float b) { return __builtin_elementwise_minimumnum(a, b); }

template <class T> DEVICE T larger(T a, T b) { return a > b ? a : b; }
template <class T> DEVICE T smaller(T a, T b) { return a < b ? a : b; }

#define TABLE constexpr
#define F32_NAN __builtin_nanf("")
#define F32_INF __builtin_inff()
DEVICE float abs_(float x) { return __builtin_fabsf(x); }
DEVICE float floor_(float x) { return __builtin_floorf(x); }
DEVICE float ceil_(float x) { return __builtin_ceilf(x); }
DEVICE float round_(float x) { return __builtin_rintf(x); }
DEVICE float trunc_(float x) { return __builtin_truncf(x); }
template <class T> DEVICE T fma_(T a, T b, T c) { return __builtin_elementwise_fma(a, b, c); }

// -- functions (accuracy: tiles/reference/accuracy.py) ---------------------------------------------------

DEVICE float exp_(float x) { return __builtin_expf(x); }
// v_exp_f32 gives 0 instead of a subnormal result, which the contract allows.
DEVICE float exp2_(float x) { return __builtin_amdgcn_exp2f(x); }
DEVICE float log_(float x) { return __builtin_logf(x); }
DEVICE float log2_(float x) { return __builtin_log2f(x); }
DEVICE float sqrt_(float x) { return __builtin_sqrtf(x); }
// The instructions err by one ulp at most, but take subnormal operands for 0 and give 0 for subnormal results.
DEVICE float fast_rcp(float x) { return __builtin_amdgcn_rcpf(x); }
// Nearly always correctly rounded, for what is neither very large nor very small.
DEVICE float close_rcp(float x) {
  const float r = fast_rcp(x);
  return __builtin_fmaf(__builtin_fmaf(-x, r, 1.0f), r, r);
}
DEVICE float rsqrt_(float x) {
  bool tiny = __builtin_fabsf(x) < 0x1p-126f;
  return __builtin_amdgcn_rsqf(tiny ? x * 0x1p24f : x) * (tiny ? 0x1p12f : 1.0f);
}
DEVICE float rcp_(float x) {
  float a = __builtin_fabsf(x), scale = a < 0x1p-126f ? 0x1p24f : a > 0x1p125f ? 0x1p-24f : 1.0f;
  return fast_rcp(x * scale) * scale;
}
// From e^-|x|, which cannot overflow: e / (1 + e) keeps its relative accuracy down to subnormal results.
DEVICE float sigmoid_(float x) {
  float e = __builtin_expf(-__builtin_fabsf(x)), r = close_rcp(1.0f + e);
  return x < 0.0f ? e * r : x != x ? x : r;
}
// x e^x / (1 + e^x). Far left e^x would be subnormal or 0 where x e^x is not yet: there e^(x + 64), then e^-64.
DEVICE float silu_(float x) {
  bool far = x < -64.0f;
  float e = __builtin_expf((far ? 64.0f : 0.0f) - __builtin_fabsf(x)), r = close_rcp(1.0f + e);
  return (x < 0.0f ? x * e : x) * (far ? 0x1.969d48p-93f : r);
}

template <int N> DEVICE float polynomial(const float (&c)[N], float t) {
  float r = c[N - 1];
  EACH(i, N - 1) r = __builtin_fmaf(r, t, c[N - 2 - i]);
  return r;
}

// Near 0 an odd minimax polynomial (relative error 2.5e-9), beyond 1 - 2 / (e^2x + 1).
DEVICE float tanh_(float x) {
  constexpr float c[] = {0x1p+0f, -0x1.555534p-2f, 0x1.110872p-3f, -0x1.b87924p-5f, 0x1.54070ap-6f, -0x1.7f870ap-8f};
  float a = __builtin_fabsf(x);
  float near = in_register(x * polynomial(c, x * x));
  float far = __builtin_copysignf(1.0f - 2.0f * fast_rcp(__builtin_expf(2.0f * a) + 1.0f), x);
  return a < 0.6f ? near : x != x ? x : far;
}

// Up to 1 an odd minimax polynomial (3.3e-11); beyond, 1 - exp(-x^2) R(1 / (1 + x/2)) (R: 3.7e-10 up to 4).
DEVICE float erf_(float x) {
  constexpr float c[] = {0x1.20dd76p+0f,  -0x1.812746p-2f, 0x1.ce2f08p-4f,  -0x1.b829a8p-6f,
                         0x1.5628eep-8f, -0x1.bcbe9ap-11f, 0x1.d8268ep-14f, -0x1.4383fep-17f};
  constexpr float r[] = {-0x1.41f50ap-13f, 0x1.23bd32p-2f, 0x1.0a008p-2f,   0x1.63d31ep-2f,
                         -0x1.a550f8p-4f,  0x1.1fdaecp-1f, -0x1.e1af32p-2f, 0x1.e7c9e6p-4f};
  float a = __builtin_fabsf(x);
  float near = in_register(x * polynomial(c, x * x));
  float complement = in_register(__builtin_expf(-a * a) * polynomial(r, fast_rcp(__builtin_fmaf(0.5f, a, 1.0f))));
  float far = a > 4.0f ? 1.0f : 1.0f - complement;
  return a < 1.0f ? near : x != x ? x : __builtin_copysignf(far, x);
}

DEVICE float gelu_(float x) { return 0.5f * x * (1.0f + erf_(x * 0x1.6a09e6p-1f)); }
DEVICE float gelu_tanh_(float x) {
  float u = 0x1.988454p-1f * (x + 0.044715f * x * x * x);
  return x / (1.0f + __builtin_expf(-2.0f * u));
}

// What comes before is computed before what comes after: keeps few temporaries of a long tile alive.
// Where all of them are asked for, the compiler's scheduler places N vector instructions after each matrix instruction.
template <int N> DEVICE void mix_in() {
  __builtin_amdgcn_sched_group_barrier(0x008, 1, 0);
  __builtin_amdgcn_sched_group_barrier(0x402, N, 0);
}
DEVICE void finish_first() { __builtin_amdgcn_sched_barrier(0); }

// -- random numbers ------------------------------------------------------------------------------------

// Philox4x32-10 (Salmon et al., SC'11): word `word` of the block for this counter and key; and all four.
DEVICE vec<u32, 4> philox_block(u32 c0, u32 c1, u64 offset, u64 seed) {
  u32 c2 = (u32)offset, c3 = (u32)(offset >> 32), k0 = (u32)seed, k1 = (u32)(seed >> 32);
  EACH(round, 10) {
    u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
    u32 n0 = (u32)(p1 >> 32) ^ c1 ^ k0, n2 = (u32)(p0 >> 32) ^ c3 ^ k1;
    c1 = (u32)p1, c3 = (u32)p0, c0 = n0, c2 = n2;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return vec<u32, 4>{c0, c1, c2, c3};
}
template <int N>
DEVICE void philox_blocks(vec<u32, 4> (&words)[N], const u32 (&c0)[N], const u32 (&c1)[N], u64 offset, u64 seed) {
  EACH(i, N) words[i] = philox_block(c0[i], c1[i], offset, seed);  // the keys' schedule is scalar
}
DEVICE u32 philox(u32 c0, u32 c1, u64 offset, u64 seed, int word) {
  const vec<u32, 4> x = philox_block(c0, c1, offset, seed);
  return word & 2 ? (word & 1 ? x[3] : x[2]) : (word & 1 ? x[1] : x[0]);
}

// -- memory --------------------------------------------------------------------------------------------

// A global tensor argument: `origin` is its first element's address; extents and strides count elements.
template <class T, int Rank> struct tensor {
  const char *base;
  long offset;  // bytes from base to the first element: strides may be negative
  long strides[Rank];
  int extents[Rank];
  DEVICE __attribute__((address_space(1))) T *at(long element) const {
    return (__attribute__((address_space(1))) T *)(base + offset) + element;
  }
};

// A coordinate counted in tiles, in elements. What 32 bits cannot hold is outside every tensor, and stays so.
DEVICE int scaled_coordinate(int x, int extent) {
  const int limit = 0x7fffffff / extent;
  return x > limit ? 0x7fffffff : x < -limit ? -0x7fffffff - 1 : x * extent;
}
DEVICE int scaled_coordinate(long x, int extent) {
  return scaled_coordinate(x > 0x7fffffffl ? 0x7fffffff : x < -0x7fffffffl ? -0x7fffffff : (int)x, extent);
}

#define GLOBAL __attribute__((address_space(1)))

// Whether a value has the bits that buffers give outside.
template <class T> DEVICE bool is_zero(T x) {
  if constexpr (sizeof(T) == 8) return bits<u64>(x) == 0;
  else if constexpr (sizeof(T) == 4) return bits<u32>(x) == 0;
  else if constexpr (sizeof(T) == 2) return bits<u16>(x) == 0;
  else return bits<u8>(x) == 0;
}

template <class T> DEVICE T load_if(bool inside, const GLOBAL T *p, T fill) {
  T x = fill;
  if (inside) x = *p;
  return x;
}

template <class T, int N> DEVICE vec<T, N> load_vector_if(bool inside, const GLOBAL T *p, T fill) {
  vec<T, N> x;
  EACH(i, N) x[i] = fill;
  if (inside) x = *(const GLOBAL vec<T, N> *)p;
  return x;
}

template <class T, class V> DEVICE void store_vector(GLOBAL T *p, V x) { *(GLOBAL V *)p = x; }

template <class T> DEVICE void atomic_add(GLOBAL T *p, T x) {
  if constexpr (sizeof(T) == 4) {
    // Memory of the device itself: without this promise a float addition becomes a compare-and-swap loop.
    [[clang::atomic(no_remote_memory, no_fine_grained_memory, ignore_denormal_mode)]] {
      __scoped_atomic_fetch_add((T *)p, x, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    }
  } else {  // 16-bit floats: compare and swap of the aligned word around them
    GLOBAL u32 *word = (GLOBAL u32 *)((u64)p & ~3ul);
    int shift = ((u64)p & 2) * 8;
    u32 old = __scoped_atomic_load_n((u32 *)word, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE), wanted;
    do {
      T sum = to<T>((float)bits<T>((u16)(old >> shift)) + (float)x);
      wanted = (old & ~(0xffffu << shift)) | (u32)bits<u16>(sum) << shift;
    } while (!__scoped_atomic_compare_exchange_n((u32 *)word, &old, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                                 __MEMORY_SCOPE_DEVICE));
  }
}

// All waves have arrived and their LDS accesses are done. In assembly, because a fence would also wait for the
// direct loads that are in flight.
DEVICE void workgroup_barrier() { asm volatile("s_waitcnt lgkmcnt(0)\n\ts_barrier" ::: "memory"); }

// Zeros everywhere: padding that products read, and whose results nobody uses, must still have values.
DEVICE void clear_shared(u8 *lds, int bytes, int thread, int threads) {
  for (int i = thread * 16; i < bytes; i += threads * 16) *(vec<u32, 4> *)(lds + i) = vec<u32, 4>{};
  workgroup_barrier();
}

template <class T> DEVICE T zero() {
  T x{};
  return x;
}

// a * b + c rounded to odd in f32, for f16 and bf16 operands: rounding it to their format is the only rounding.
DEVICE float fma_odd(float a, float b, float c) {
  double product = (double)a * (double)b, sum = product + (double)c;
  double part = sum - product, error = (product - (sum - part)) + ((double)c - part);
  u64 bits64 = bits<u64>(sum);
  if (error != 0 && !(bits64 & 1) && sum - sum == 0) bits64 += ((error < 0) == (sum > 0)) ? -1 : 1;
  double odd = bits<double>(bits64);
  float f = (float)odd;
  double rest = odd - (double)f;
  if (rest == 0 || f - f != 0) return f;
  u32 b32 = bits<u32>(f);
  b32 -= (rest < 0) == (odd > 0);
  return bits<float>(b32 | 1);
}

// Integers as f32 in a directed rounding.
template <Rounding R> DEVICE float f32_from_integer(long x) {
  float f = (float)x;  // to nearest even
  // 2^63 is no long, so compare where f is in range; f == 2^63 is above every long.
  bool above = f >= 0x1p63f || (long)f > x, below = f < 0x1p63f && (long)f < x;
  u32 b = bits<u32>(f);
  if (R == rtp && below) b += f < 0 ? -1 : 1;
  if (R == rtn && above) b += f > 0 ? -1 : 1;
  if (R == rtz && ((f > 0 && above) || (f < 0 && below))) b -= 1;
  if (R == rta) {  // nearest even went the wrong way only on a tie
    long rest = f >= 0x1p63f ? 0 : x - (long)f;
    float next = bits<float>(b + 1);
    bool tie = rest != 0 && (x > 0) == (rest > 0) && (long)(next - f) == 2 * rest;
    if (tie) b += 1;
  }
  return bits<float>(b);
}

// -- control -------------------------------------------------------------------------------------------

// A condition that all lanes share, as a scalar.
DEVICE bool uniform(bool x) { return __builtin_amdgcn_readfirstlane((int)x) != 0; }

// A barrier after which global writes of the workgroup are visible to all of it.
DEVICE void global_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_waitcnt(0);
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// A failed ww.check: the smallest number wins, so that the report does not depend on the order of blocks.
DEVICE void fail(int *status, int number) {
  int old = __scoped_atomic_load_n(status, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  while ((old == 0 || number < old) &&
         !__scoped_atomic_compare_exchange_n(status, &old, number, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                             __MEMORY_SCOPE_DEVICE)) {
  }
}

// Place for the record of a ww.print.
DEVICE u64 reserve(u64 *prints, int words) {
  return __scoped_atomic_fetch_add(prints, (u64)words, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

DEVICE int trip_count(int start, int stop, int step) {
  long distance = step > 0 ? (long)stop - start : (long)start - stop, stride = step > 0 ? step : -(long)step;
  return distance <= 0 ? 0 : (int)((distance + stride - 1) / stride);
}

#define LAMBDA __attribute__((device, always_inline))

// -- buffers: accesses that leave out lanes without branches ------------------------------------------------

constexpr int BUFFER_BYTES = 0x7ffffff0;

// A buffer over everything from `p` on; lanes that must not read pass an offset beyond it and get zeros.
DEVICE __amdgpu_buffer_rsrc_t buffer(const GLOBAL char *p) {
  return __builtin_amdgcn_make_buffer_rsrc((void *)p, 0, BUFFER_BYTES, 0x00027000);
}

// How many steps of `advance` bytes a tile of `reach` bytes takes within a buffer: whether the range counts scalar offsets
// as well is not relied on.
DEVICE int steps_in_buffer(int steps, long advance, long reach) {
  const long room = BUFFER_BYTES - (1 << 16) - reach;
  if (room < 0) return 0;
  return (long)steps * advance <= room ? steps : (int)(room / advance);
}

// The same as four registers, for assembly.
DEVICE vec<u32, 4> buffer_words(const GLOBAL char *p) {
  const u64 address = same_for_all((u64)p);
  return {(u32)address, (u32)(address >> 32), BUFFER_BYTES, 0x00027000};
}

// N elements of 4, 8 or 16 bytes in all; `moved` is the same for all lanes. Not by `bits`: clang would give its copies for
// the builtins' vectors and for ours one name.
template <class T, int N> DEVICE vec<T, N> load_buffer(__amdgpu_buffer_rsrc_t from, int offset, int moved) {
  if constexpr (sizeof(T) * N == 16) return __builtin_bit_cast(vec<T, N>, __builtin_amdgcn_raw_buffer_load_b128(from, offset, moved, 0));
  else if constexpr (sizeof(T) * N == 8) return __builtin_bit_cast(vec<T, N>, __builtin_amdgcn_raw_buffer_load_b64(from, offset, moved, 0));
  else return __builtin_bit_cast(vec<T, N>, __builtin_amdgcn_raw_buffer_load_b32(from, offset, moved, 0));
}

template <class V> DEVICE void store_buffer(__amdgpu_buffer_rsrc_t to, int offset, V x) {
  if constexpr (sizeof(x) == 16) __builtin_amdgcn_raw_buffer_store_b128(bits<vec<u32, 4>>(x), to, offset, 0, 0);
  else if constexpr (sizeof(x) == 8) __builtin_amdgcn_raw_buffer_store_b64(bits<vec<u32, 2>>(x), to, offset, 0, 0);
  else __builtin_amdgcn_raw_buffer_store_b32(bits<u32>(x), to, offset, 0, 0);
}

// N elements of memory at an address that all lanes share and a lane's `place` from there, which is not negative where
// `inside` holds; `fill` elsewhere.
template <class T, int N> DEVICE vec<T, N> load_at_if(bool inside, const GLOBAL T *base, int place, T fill) {
  vec<T, N> outside;
  EACH(i, N) outside[i] = fill;
  if constexpr (sizeof(T) * N < 4) {
    if (inside) outside = *(const GLOBAL vec<T, N> *)(base + place);
    return outside;
  } else {
    const auto from = buffer((const GLOBAL char *)same_for_all((u64)base));
    const vec<T, N> x = load_buffer<T, N>(from, inside ? place * (int)sizeof(T) : BUFFER_BYTES, 0);
    const bool zero = is_zero(fill);
    return (__builtin_constant_p(zero) && zero) || inside ? x : outside;
  }
}

template <class T, class V> DEVICE void store_at_if(bool inside, GLOBAL T *base, int place, V x) {
  if constexpr (sizeof(x) < 4) {
    if (inside) *(GLOBAL V *)(base + place) = x;
  } else {
    const auto to = buffer((const GLOBAL char *)same_for_all((u64)base));
    store_buffer(to, inside ? place * (int)sizeof(T) : BUFFER_BYTES, x);
  }
}

// -- direct loads to LDS (gfx950) ------------------------------------------------------------------------

// 16 bytes for each lane, to 16 bytes for each lane from `to` + Added on, which all lanes of the wave share; `from`
// moves by `moved` + Added as well.
template <int Added> DEVICE void load_to_lds(__amdgpu_buffer_rsrc_t from, u8 *to, int offset, int moved) {
#if defined(__gfx950__)
  __builtin_amdgcn_raw_ptr_buffer_load_lds(from, (__attribute__((address_space(3))) void *)to, 16, offset, moved, Added,
                                           0);
#endif
}

// At most N vector memory operations of this wave are outstanding, and all waves have arrived.
template <int N> DEVICE void stage_barrier() {
  asm volatile("s_waitcnt vmcnt(%0) lgkmcnt(0)\n\ts_barrier" ::"n"(N) : "memory");
}

// At most so many instructions of each counter are outstanding (CDNA3 ISA, S_WAITCNT). The compiler knows this wait
// and adds none of its own for what it covers.
template <int Vm, int Lgkm> DEVICE void wait_for() {
  asm volatile("" ::: "memory");
  __builtin_amdgcn_s_waitcnt((Vm & 15) | 7 << 4 | Lgkm << 8 | (Vm >> 4) << 14);
  asm volatile("" ::: "memory");
}

// What comes later and uses x happens after the wait before this.
template <class T> DEVICE void landed(T &x) { asm volatile("" : "+v"(x)); }

// All waves have arrived; their accesses to memory may be under way.
DEVICE void cluster_barrier() { asm volatile("s_barrier" ::: "memory"); }

// How many of the first trips have [origin + trip * step, ... + n) inside [0, extent).
DEVICE int whole_trips(int trips, long origin, long step, int n, int extent) {
  const long last = (long)extent - n;
  if (step < 0 || origin < 0 || origin > last) return 0;
  if (step == 0) return trips;
  const u32 count = step > 0x7fffffff ? 0 : (u32)(last - origin) / (u32)step;
  return count < (u32)trips ? (int)count + 1 : trips;
}

// The value, in a way that keeps what is computed from it on the path that needs it, and what it is computed from
// before all that comes later.
template <class T> DEVICE T only_here(T x) {
  asm volatile("" : "+v"(x));
  return x;
}

// This lane's number, computed here.
DEVICE int lane_again() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, only_here(0u))); }

// Register i of a tile is computed before all that comes later.
template <class Tile> DEVICE void made_here(Tile &x, int i) {
  typedef decltype(x.get(0)) T;
  constexpr int n = 4 / sizeof(T);
  if constexpr (n == 1) x.set(i, only_here(x.get(i)));
  else {
    vec<T, n> word;
    EACH(e, n) word[e] = x.get(i * n + e);
    word = bits<vec<T, n>>(only_here(bits<u32>(word)));
    EACH(e, n) x.set(i * n + e, word[e]);
  }
}

// Items 2 i and 2 i + 1 of a tile of f32, in two registers that follow each other, as packed instructions take them.
template <class Tile> DEVICE void pair_made_here(Tile &x, int i) {
  const vec<float, 2> pair = only_here(vec<float, 2>{x.get(2 * i), x.get(2 * i + 1)});
  x.set(2 * i, pair[0]), x.set(2 * i + 1, pair[1]);
}

DEVICE u32 lds_address(const u8 *p) { return (u32)(u64)(const __attribute__((address_space(3))) u8 *)p; }

// ds_read_b64_tr_b16 and _b8: of each 16 lanes, lane l receives column l of the rows that all of them bring.
// The result is there after the next wait for LDS that names it.
template <int Bits> DEVICE vec<short, 4> read_transposed(u32 address, int offset) {
  vec<short, 4> x;
#if defined(__gfx950__)
  if constexpr (Bits == 16) asm volatile("ds_read_b64_tr_b16 %0, %1 offset:%2" : "=v"(x) : "v"(address), "i"(offset) : "memory");
  else asm volatile("ds_read_b64_tr_b8 %0, %1 offset:%2" : "=v"(x) : "v"(address), "i"(offset) : "memory");
#endif
  return x;
}

// -- grid order (grid_order.py has the same functions, with their reasons) ---------------------------------

constexpr int xcds = 8;

DEVICE int chiplet_transform(int block, int size, int chunk) {
  const int group = xcds * chunk;
  if (block >= size / group * group) return block;
  const int turn = block / xcds;
  return turn / chunk * group + block % xcds * chunk + turn % chunk;
}

DEVICE int contiguous_transform(int block, int size) {
  const int xcd = block % xcds, extra = size % xcds;
  return xcd * (size / xcds) + (xcd < extra ? xcd : extra) + block / xcds;
}

// Position within windows of `window` rows, walked column by column: row * cols + col.
DEVICE int windowed_position(int position, int rows, int cols, int window) {
  const int first = position / (window * cols) * window, left = rows - first;
  const int height = left < window ? left : window, rest = position % (window * cols);
  return (first + rest % height) * cols + rest / height;
}
