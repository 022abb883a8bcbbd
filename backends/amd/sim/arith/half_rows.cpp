#include "half_rows.hpp"

#include "quick_convert.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>
#define AMDSIM_F16C __attribute__((target("avx2,f16c")))
#endif

namespace amdsim::arith {
namespace {

WARPWAVE_MULTIVERSION void widen_by_integers(f32* out, const u32* words, u32 shift) {
  for (int l = 0; l < kLanes; ++l) out[l] = to_f32(f16{u16(words[l] >> shift)});
}
WARPWAVE_MULTIVERSION void narrow_by_integers(u32* out, const f32* values) {
  for (int l = 0; l < kLanes; ++l) out[l] = to_f16(values[l]).bits;
}
WARPWAVE_MULTIVERSION void narrow_pairs_by_integers(u32* out, const f32* low, const f32* high, Narrowing rounding) {
  if (rounding == Narrowing::nearest)
    for (int l = 0; l < kLanes; ++l) out[l] = u32(to_f16(low[l]).bits) | u32(to_f16(high[l]).bits) << 16;
  else
    for (int l = 0; l < kLanes; ++l)
      out[l] = u32(to_f16_toward_zero(low[l])) | u32(to_f16_toward_zero(high[l])) << 16;
}

#ifdef AMDSIM_F16C
bool has_f16c() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  return has;
}

AMDSIM_F16C void widen_by_f16c(f32* out, const u32* words, u32 shift) {
  const __m256i low = _mm256_set1_epi32(0xffff);
  const __m128i count = _mm_cvtsi32_si128(static_cast<int>(shift));
  for (int l = 0; l < kLanes; l += 8) {
    const __m256i word = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + l));
    const __m256i half = _mm256_and_si256(_mm256_srl_epi32(word, count), low);
    const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    _mm256_storeu_ps(out + l, _mm256_cvtph_ps(packed));
  }
}
AMDSIM_F16C void narrow_by_f16c(u32* out, const f32* values) {
  for (int l = 0; l < kLanes; l += 8) {
    const __m128i packed = _mm256_cvtps_ph(_mm256_loadu_ps(values + l), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + l), _mm256_cvtepu16_epi32(packed));
  }
}
template <int Rounding>
AMDSIM_F16C void narrow_pairs_by_f16c(u32* out, const f32* low, const f32* high) {
  for (int l = 0; l < kLanes; l += 8) {
    const __m128i first = _mm256_cvtps_ph(_mm256_loadu_ps(low + l), Rounding);
    const __m128i second = _mm256_cvtps_ph(_mm256_loadu_ps(high + l), Rounding);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + l), _mm_unpacklo_epi16(first, second));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + l + 4), _mm_unpackhi_epi16(first, second));
  }
}

// Eight sums of an exact product and an addend, with the last bit odd where they are inexact (wide_fma). `bad` collects
// lanes whose error term is no number: those with a NaN or an infinity.
AMDSIM_F16C inline __m256 odd_fma(__m256 a, __m256 b, __m256 c, __m256& bad) {
  const __m256 product = _mm256_mul_ps(a, b), sum = _mm256_add_ps(product, c), back = _mm256_sub_ps(sum, product);
  const __m256 missing = _mm256_add_ps(_mm256_sub_ps(product, _mm256_sub_ps(sum, back)), _mm256_sub_ps(c, back));
  bad = _mm256_or_ps(bad, _mm256_cmp_ps(missing, missing, _CMP_UNORD_Q));
  const __m256i raw = _mm256_castps_si256(sum), one = _mm256_set1_epi32(1);
  const __m256i even = _mm256_cmpeq_epi32(_mm256_and_si256(raw, one), _mm256_setzero_si256());
  const __m256i inexact = _mm256_castps_si256(_mm256_cmp_ps(missing, _mm256_setzero_ps(), _CMP_NEQ_UQ));
  const __m256i signs = _mm256_srai_epi32(_mm256_xor_si256(_mm256_castps_si256(missing), raw), 31);
  const __m256i step = _mm256_or_si256(signs, one);  // towards zero -1, away from it 1
  return _mm256_castsi256_ps(_mm256_add_epi32(raw, _mm256_and_si256(step, _mm256_and_si256(even, inexact))));
}

template <HalfOp Op>
AMDSIM_F16C inline __m256 computed(__m256 a, __m256 b, __m256 c, __m256& bad) {
  if constexpr (Op == HalfOp::fma) return odd_fma(a, b, c, bad);
  const __m256 value = Op == HalfOp::add   ? _mm256_add_ps(a, b)
                       : Op == HalfOp::sub ? _mm256_sub_ps(a, b)
                       : Op == HalfOp::mul ? _mm256_mul_ps(a, b)
                                           : _mm256_sub_ps(b, a);
  bad = _mm256_or_ps(bad, _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  return value;
}

AMDSIM_F16C inline __m256 eight_halves(const u32* words) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words)));
}

template <HalfOp Op>
AMDSIM_F16C bool on_both_halves_by_f16c(u32* d, const u32* a, const u32* b, const u32* c) {
  alignas(64) u32 out[kLanes];
  __m256 bad = _mm256_setzero_ps();
  for (int l = 0; l < kLanes; l += 4) {
    const __m256 addend = Op == HalfOp::fma ? eight_halves(c + l) : _mm256_setzero_ps();
    const __m256 value = computed<Op>(eight_halves(a + l), eight_halves(b + l), addend, bad);
    _mm_store_si128(reinterpret_cast<__m128i*>(out + l), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  }
  if (_mm256_movemask_ps(bad)) return false;
  std::memcpy(d, out, sizeof out);
  return true;
}
#endif

}  // namespace

void widen_halves(f32* out, const u32* words, u32 shift) {
#ifdef AMDSIM_F16C
  if (has_f16c()) return widen_by_f16c(out, words, shift);
#endif
  widen_by_integers(out, words, shift);
}

void narrow_to_halves(u32* out, const f32* values) {
#ifdef AMDSIM_F16C
  if (has_f16c()) return narrow_by_f16c(out, values);
#endif
  narrow_by_integers(out, values);
}

void narrow_pairs_to_halves(u32* out, const f32* low, const f32* high, Narrowing rounding) {
#ifdef AMDSIM_F16C
  if (has_f16c() && rounding == Narrowing::nearest) return narrow_pairs_by_f16c<_MM_FROUND_TO_NEAREST_INT>(out, low, high);
  if (has_f16c()) return narrow_pairs_by_f16c<_MM_FROUND_TO_ZERO>(out, low, high);
#endif
  narrow_pairs_by_integers(out, low, high, rounding);
}

template <HalfOp Op>
bool on_both_halves([[maybe_unused]] u32* d, [[maybe_unused]] const u32* a, [[maybe_unused]] const u32* b,
                    [[maybe_unused]] const u32* c) {
#ifdef AMDSIM_F16C
  if (has_f16c()) return on_both_halves_by_f16c<Op>(d, a, b, c);
#endif
  return false;
}
template bool on_both_halves<HalfOp::add>(u32*, const u32*, const u32*, const u32*);
template bool on_both_halves<HalfOp::sub>(u32*, const u32*, const u32*, const u32*);
template bool on_both_halves<HalfOp::sub_rev>(u32*, const u32*, const u32*, const u32*);
template bool on_both_halves<HalfOp::mul>(u32*, const u32*, const u32*, const u32*);
template bool on_both_halves<HalfOp::fma>(u32*, const u32*, const u32*, const u32*);

}  // namespace amdsim::arith
