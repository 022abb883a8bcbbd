#include "lane_moves.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>
#define AMDSIM_AVX2 __attribute__((target("avx2")))
#endif

namespace amdsim {
namespace {

#ifdef AMDSIM_AVX2
// A row is two registers of eight lanes: each is permuted by the low three bits, the fourth bit chooses.
AMDSIM_AVX2 void move_in_rows(u32* to, const u32* from, const i8* map) {
  for (int l = 0; l < kLanes; l += 8) {
    const u32* row = from + (l & ~15);
    const __m256i index = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(map + l)));
    const __m256i low = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row)), index);
    const __m256i high =
        _mm256_permutevar8x32_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + 8)), index);
    const __m256 choice = _mm256_castsi256_ps(_mm256_slli_epi32(index, 28));
    const __m256 moved = _mm256_blendv_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), choice);
    _mm256_storeu_ps(reinterpret_cast<float*>(to + l), moved);
  }
}
bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}
#endif

}  // namespace

void move_lanes(u32* to, const u32* from, const i8* map, [[maybe_unused]] bool in_rows) {
#ifdef AMDSIM_AVX2
  if (in_rows && has_avx2()) return move_in_rows(to, from, map);
#endif
  for (int l = 0; l < kLanes; ++l) to[l] = from[map[l] & 63];
}

}  // namespace amdsim
