// The extension header's functions: accuracy over all f32 inputs, conversions, arithmetic, memory.
#include "common.cuh"

// -- accuracy, exhaustive ----------------------------------------------------------------------------------------
// The greatest error as a multiple of what is allowed, with the input it occurs at: both in one word, so that the
// greatest of all threads is an atomicMax. result[1]: inputs whose result is not the one required exactly.

DEVICE double spacing(double x) {
  int exponent;
  frexp(x, &exponent);
  const int e = exponent - 1 < -126 ? -126 : exponent - 1;
  return ldexp(1.0, e - 23);
}

template <class Got, class Exact>
DEVICE void measure(unsigned long long *result, double ulps, double argument_ulps, bool flushes, Got got, Exact exact) {
  unsigned long long worst = 0;
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < 1ul << 32; i += (u64)gridDim.x * blockDim.x) {
    const float x = bits<float>((u32)i), y = got(x);
    const double want = exact((double)x);
    const bool strict = x == 0.0f || isinf(x) || isinf(want) || isnan(want);
    if (strict) {
      const bool same = isnan(want) ? isnan(y) : (double)y == want && signbit(y) == signbit(want);
      if (!same) atomicAdd(&result[1], 1ull), atomicMax(&result[2], (unsigned long long)(u32)i);
      continue;
    }
    double error = fabs((double)y - want);
    if (isinf(y) && fabs(want) > 3.4028235677973366e38 - 2 * ulps * spacing(3e38)) error = 0;
    if (flushes && y == 0.0f && fabs(want) < 0x1p-126) error = 0;
    const double allowed = ulps * spacing(want) + argument_ulps * spacing((double)x);
    const float ratio = (float)(error / allowed);
    const unsigned long long key = (unsigned long long)__float_as_uint(isnan(ratio) ? F32_INF : ratio) << 32 | (u32)i;
    worst = key > worst ? key : worst;
  }
  atomicMax(&result[0], worst);
}
#define ACCURACY(name, got, exact) \
  TEST(accuracy_##name, 256)(unsigned long long *result, double ulps, double argument_ulps, int flushes) { \
    measure(result, ulps, argument_ulps, flushes, [](float x) { return got; }, [](double x) { return exact; }); \
  }
ACCURACY(exp, exp_(x), exp(x))
ACCURACY(exp2, exp2_(x), exp2(x))
ACCURACY(log, log_(x), log(x))
ACCURACY(log2, log2_(x), log2(x))
ACCURACY(sqrt, sqrt_(x), sqrt(x))
ACCURACY(rsqrt, rsqrt_(x), 1.0 / sqrt(x))
ACCURACY(rcp, rcp_(x), 1.0 / x)
ACCURACY(tanh, tanh_(x), tanh(x))
ACCURACY(sigmoid, sigmoid_(x), 1.0 / (1.0 + exp(-x)))
ACCURACY(erf, erf_(x), erf(x))
ACCURACY(gelu, gelu_(x), 0.5 * x * erfc(-x * 0.70710678118654752440))
ACCURACY(gelu_tanh, gelu_tanh_(x), x / (1.0 + exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x))))
ACCURACY(silu, silu_(x), x / (1.0 + exp(-x)))

// -- conversions -------------------------------------------------------------------------------------------------

// Inputs for which the instruction and the integer arithmetic differ (any NaN is any NaN).
template <class F> DEVICE bool same_code(u32 a, u32 b) {
  return a == b || (decode<F>(a) != decode<F>(a) && decode<F>(b) != decode<F>(b));
}
TEST(encoders, 256)(unsigned long long *different) {
  unsigned long long n[6] = {};
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < 1ul << 32; i += (u64)gridDim.x * blockDim.x) {
    const float x = bits<float>((u32)i);
    n[0] += !same_code<f16_format>(bits<u16>(f16_from<rne, false>(x)), encode<f16_format, rne, false>(x));
    n[1] += !same_code<bf16_format>(bits<u16>(bf16_from<rne, false>(x)), encode<bf16_format, rne, false>(x));
    n[2] += !same_code<fp8e4m3_format>(encode_fp8<fp8e4m3_format, rne, true>(x), encode<fp8e4m3_format, rne, true>(x));
    n[3] +=
        !same_code<fp8e4m3_format>(encode_fp8<fp8e4m3_format, rne, false>(x), encode<fp8e4m3_format, rne, false>(x));
    n[4] += !same_code<fp8e5m2_format>(encode_fp8<fp8e5m2_format, rne, true>(x), encode<fp8e5m2_format, rne, true>(x));
    n[5] +=
        !same_code<fp8e5m2_format>(encode_fp8<fp8e5m2_format, rne, false>(x), encode<fp8e5m2_format, rne, false>(x));
  }
  EACH(i, 6) if (n[i]) atomicAdd(&different[i], n[i]);
}

// Samples in each format, rounding and with saturation: codes, in the order of the loops.
template <class F, Rounding R> DEVICE void encode_sample(u16 *out, float x, int n, int i, int &plane) {
  out[(long)n * plane++ + i] = encode<F, R, false>(x);
  out[(long)n * plane++ + i] = encode<F, R, true>(x);
}
template <class F> DEVICE void encode_samples(u16 *out, float x, int n, int i, int &plane) {
  encode_sample<F, rne>(out, x, n, i, plane);
  encode_sample<F, rtz>(out, x, n, i, plane);
  encode_sample<F, rta>(out, x, n, i, plane);
  encode_sample<F, rtp>(out, x, n, i, plane);
  encode_sample<F, rtn>(out, x, n, i, plane);
}
TEST(samples, 256)(u16 *out, const float *in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int plane = 0;
  encode_samples<f16_format>(out, in[i], n, i, plane);
  encode_samples<bf16_format>(out, in[i], n, i, plane);
  encode_samples<fp8e4m3_format>(out, in[i], n, i, plane);
  encode_samples<fp8e5m2_format>(out, in[i], n, i, plane);
  encode_samples<fp8e4m3fnuz_format>(out, in[i], n, i, plane);
  encode_samples<fp8e5m2fnuz_format>(out, in[i], n, i, plane);
}

// All codes as f32, 65536 a format.
TEST(decoders, 256)(float *out) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = f32_from_f16(bits<f16>((u16)i));
  out[65536 + i] = f32_from_bf16(bits<bf16>((u16)i));
  out[2 * 65536 + i] = f32_from_fp8e4m3(bits<fp8e4m3>((u8)i));
  out[3 * 65536 + i] = f32_from_fp8e5m2(bits<fp8e5m2>((u8)i));
  out[4 * 65536 + i] = f32_from_fp8e4m3fnuz((u8)i);
  out[5 * 65536 + i] = f32_from_fp8e5m2fnuz((u8)i);
}

TEST(integers, 256)(long *out, const float *in, const long *whole, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int plane = 0;
#define TO_INTEGER(R) \
  out[(long)n * plane++ + i] = integer_from<signed char, R>(in[i]); \
  out[(long)n * plane++ + i] = integer_from<int, R>(in[i]); \
  out[(long)n * plane++ + i] = integer_from<long, R>(in[i]); \
  out[(long)n * plane++ + i] = bits<int>(f32_from_integer<R>(whole[i])); \
  out[(long)n * plane++ + i] = bits<u16>(bf16_from<R, false>(odd_from_integer(whole[i])));
  TO_INTEGER(rne)
  TO_INTEGER(rtz)
  TO_INTEGER(rta)
  TO_INTEGER(rtp)
  TO_INTEGER(rtn)
  out[(long)n * plane++ + i] = saturated<signed char>(whole[i]);
  out[(long)n * plane++ + i] = saturated<int>(whole[i]);
}

// -- arithmetic --------------------------------------------------------------------------------------------------

TEST(extremes, 256)(float *out, const float *a, const float *b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = maximum(a[i], b[i]);
  out[n + i] = minimum(a[i], b[i]);
  out[2 * n + i] = maximum_number(a[i], b[i]);
  out[3 * n + i] = minimum_number(a[i], b[i]);
}
TEST(short_arithmetic, 256)(u16 *out, const u16 *a, const u16 *b, const u16 *c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const f16 x = bits<f16>(a[i]), y = bits<f16>(b[i]), z = bits<f16>(c[i]);
  const bf16 p = bits<bf16>(a[i]), q = bits<bf16>(b[i]), r = bits<bf16>(c[i]);
  out[i] = bits<u16>(x + y);
  out[n + i] = bits<u16>(x - y);
  out[2 * n + i] = bits<u16>(x * y);
  out[3 * n + i] = bits<u16>(x / y);
  out[4 * n + i] = bits<u16>(fma_(x, y, z));
  out[5 * n + i] = bits<u16>(to<bf16>(fma_odd(f32_from_bf16(p), f32_from_bf16(q), f32_from_bf16(r))));
}
TEST(divisions, 256)(int *out, const int *a, const int *b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = floor_div<int>(a[i], b[i]);
  out[n + i] = floor_mod<int>(a[i], b[i]);
  out[2 * n + i] = (int)floor_div<long>(a[i], b[i]);
  out[3 * n + i] = floor_div<signed char>((signed char)a[i], (signed char)b[i]);
  out[4 * n + i] = floor_mod<signed char>((signed char)a[i], (signed char)b[i]);
  out[5 * n + i] = (int)philox((u32)a[i], (u32)b[i], 0x123456789abcdef0ul + i, 0xfedcba9876543210ul, i & 3);
}

// -- memory and lanes ----------------------------------------------------------------------------------------------

// One value a lane, side by side, and the place for the next.
template <class T> DEVICE void keep(u8 *&place, T x) {
  *(T *)(place + lane_id() * sizeof(T)) = x;
  place += 32 * sizeof(T);
}
TEST(accesses, 32)(u8 *out, const u8 *in, int inside) {
  const int lane = lane_id();
  const bool reads = lane < inside;
  u8 *place = out;
  keep(place, load_if<u8>(reads, in + lane, 7));
  keep(place, load_if<f16>(reads, (const f16 *)in + lane, bits<f16>((u16)7)));
  keep(place, load_if<float>(reads, (const float *)in + lane, bits<float>(7u)));
  keep(place, load_if<long>(reads, (const long *)in + lane, 7));
  keep(place, load_vector_if<u8, 2>(reads, in + 2 * lane, 7));
  keep(place, load_vector_if<bf16, 8>(reads, (const bf16 *)in + 8 * lane, bits<bf16>((u16)7)));
  keep(place, load_vector_if<float, 4>(reads, (const float *)in + 4 * lane, bits<float>(7u)));
  keep(place, shuffle_xor<1>((u8)lane)), keep(place, shuffle_xor<4>((u16)lane)), keep(place, shuffle_xor<16>((u32)lane));
  keep(place, shuffle_xor<31>((long)lane << 40));
}

// Each thread adds (its number % 4) once; the destinations begin at an odd element of 16 bits.
TEST(atomics, 256)(float *f, int *i, long *l, u16 *h, u16 *b, int *status, u64 *prints) {
  const int x = threadIdx.x % 4;
  atomic_add(f, (float)x);
  atomic_add(i, x);
  atomic_add(l, (long)x << 33);
  atomic_add((f16 *)h + 1, to<f16>((float)x));
  atomic_add((bf16 *)b + 1, to<bf16>((float)x));
  add_by_swapping((bf16 *)b + 2, to<bf16>(threadIdx.x < 64 ? 1.0f : 0.0f));
  if (x == 3) fail(status, 5 + threadIdx.x);
  reserve(prints, x);
}
