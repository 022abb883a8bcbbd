#include "half_rows.hpp"

#include "floats.hpp"

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

}  // namespace amdsim::arith
