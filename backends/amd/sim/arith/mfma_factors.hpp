// Matrix operands split into significand and exponent, as the multiplier array of a matrix core sees them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "formats.hpp"

namespace amdsim::arith {

// Largest operand of any MFMA or SMFMAC: 32 x 64 or 16 x 128 elements, and rows padded to 16 lanes for 4x4
// shapes.
inline constexpr int kMaxFactors = 4096;

// The exponent given to a factor that is zero. The published model (MMA-Sim, arXiv 2511.10909) uses -126,
// which lets 0 * huge raise the alignment exponent of bf16 and xf32 sums. Hopper hardware contradicts that (a
// zero product takes no part in the alignment), and no CDNA3 measurement exists. ASSUMPTION: CDNA3 and CDNA4
// behave as Hopper does; this also is what the published model itself says for f16 and fp8, whose smallest
// exponents are far above -126.
inline constexpr std::int32_t kZeroFactorExponent = -4096;

// Structure of arrays. value = significand * 2^exponent with significand in [1, 2), or in [0, 1) for
// subnormals. Infinities and NaNs carry significand 0, their value, and set `special`.
struct Factors {
  alignas(64) float significand[kMaxFactors];
  alignas(64) std::int32_t exponent[kMaxFactors];
  alignas(64) float value[kMaxFactors];
  std::int32_t max_exponent = kZeroFactorExponent;
  bool special = false;

  void clear() {
    max_exponent = kZeroFactorExponent;
    special = false;
  }

  void set_zero(int at) {
    significand[at] = 0.0f;
    exponent[at] = kZeroFactorExponent;
    value[at] = 0.0f;
  }

  // Takes over `count` elements of `other`; what is known of the whole of `other` is kept as a bound.
  void copy(const Factors& other, int from, int to, int count) {
    std::copy_n(other.significand + from, count, significand + to);
    std::copy_n(other.exponent + from, count, exponent + to);
    std::copy_n(other.value + from, count, value + to);
    max_exponent = other.max_exponent;
    special = other.special;
  }

  // `bits` is an IEEE f32; `min_exponent` that of the narrower format it was decoded from.
  void set(int at, std::uint32_t bits, std::int32_t min_exponent) {
    const std::uint32_t field = (bits >> 23) & 0xff;
    value[at] = std::bit_cast<float>(bits);
    if ((bits & 0x7fffffff) == 0 || field == 0xff) {
      special = special || field == 0xff;
      significand[at] = 0.0f;
      exponent[at] = kZeroFactorExponent;
      return;
    }
    set_finite(at, bits, field, min_exponent);
  }

 private:
  void set_finite(int at, std::uint32_t bits, std::uint32_t field, std::int32_t min_exponent) {
    std::int32_t power = static_cast<std::int32_t>(field) - 127;
    if (field == 0) {  // subnormal f32: 0.fraction * 2^-126
      power = -126;
      significand[at] = std::bit_cast<float>(bits) * 0x1p126f;
    } else if (power < min_exponent) {  // subnormal in its own format
      significand[at] = std::bit_cast<float>(bits) * std::bit_cast<float>((127 - min_exponent) << 23);
      power = min_exponent;
    } else {
      significand[at] = std::bit_cast<float>((bits & 0x807fffff) | 0x3f800000);
    }
    exponent[at] = power;
    max_exponent = power > max_exponent ? power : max_exponent;
  }
};

}  // namespace amdsim::arith
