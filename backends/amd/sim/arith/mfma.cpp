#include "mfma.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "multiversion.hpp"

namespace amdsim::arith {
namespace {

constexpr int kBlock = 16;            // outputs computed together
constexpr int kProductFraction = 24;  // fractional bits kept of an aligned product
constexpr int kSumFraction = 31;      // fractional bits kept of a group's sum when it meets the accumulator
constexpr int kFarBehind = 60;        // an alignment distance that shifts any product out
constexpr int kFarBehindSum = 100;    // likewise for sums held in a double

WARPWAVE_INLINE double power_of_two(std::int64_t exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

struct PartialSum {
  std::int32_t exponent[kBlock];
  std::int32_t sum[kBlock];  // in units of 2^(exponent - kProductFraction)
};

// Aligns every `step`-th product to the largest exponent, truncates it towards zero and adds exactly.
WARPWAVE_INLINE void sum_products(const float* a_significand, const std::int32_t* a_exponent,
                                  const float* b_significand, const std::int32_t* b_exponent, int count, int step,
                                  int lanes, PartialSum& out) {
  std::int32_t largest[kBlock];
  std::int32_t sum[kBlock];
  for (int j = 0; j < kBlock; ++j) largest[j] = 2 * kZeroFactorExponent, sum[j] = 0;
  for (int k = 0; k < count; k += step)
    for (int j = 0; j < kBlock; ++j) {
      const std::int32_t exponent = a_exponent[k] + b_exponent[k * lanes + j];
      largest[j] = exponent > largest[j] ? exponent : largest[j];
    }
  for (int k = 0; k < count; k += step)
    for (int j = 0; j < kBlock; ++j) {
      const std::int32_t distance = largest[j] - a_exponent[k] - b_exponent[k * lanes + j];
      const std::int32_t shift = distance < kFarBehind ? distance : kFarBehind;
      const float unit = std::bit_cast<float>((127 + kProductFraction - shift) << 23);
      // Both multiplications are exact: at most 22 significant bits times a power of two.
      sum[j] += static_cast<std::int32_t>(a_significand[k] * b_significand[k * lanes + j] * unit);
    }
  for (int j = 0; j < kBlock; ++j) out.exponent[j] = largest[j], out.sum[j] = sum[j];
}

// fp8: the even and the odd sum are aligned to the larger exponent, rounded down, and added.
WARPWAVE_INLINE void join_even_odd(const PartialSum& even, const PartialSum& odd, PartialSum& out) {
  for (int j = 0; j < kBlock; ++j) {
    const std::int32_t largest = std::max(even.exponent[j], odd.exponent[j]);
    const std::int32_t drop_even = std::min(largest - even.exponent[j], 31);
    const std::int32_t drop_odd = std::min(largest - odd.exponent[j], 31);
    out.exponent[j] = largest;
    out.sum[j] = (even.sum[j] >> drop_even) + (odd.sum[j] >> drop_odd);
  }
}

// Aligns sum and accumulator to the larger exponent, rounds both down, adds, rounds to nearest even.
// With `even_odd` an accumulator more than 25 binades below the sum counts as zero instead.
WARPWAVE_INLINE void add_to_accumulator(const PartialSum& group, bool even_odd, float* accumulator) {
  for (int j = 0; j < kBlock; ++j) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(accumulator[j]);
    const std::int32_t field = static_cast<std::int32_t>((bits >> 23) & 0xff);
    const std::int32_t own = field == 0 ? -126 : field - 127;
    const std::int32_t largest = group.exponent[j] > own ? group.exponent[j] : own;
    const std::int32_t behind = largest - group.exponent[j];
    const std::int32_t shift = behind < kFarBehindSum ? behind : kFarBehindSum;
    const double sum = std::floor(group.sum[j] * power_of_two(kSumFraction - kProductFraction - shift));
    const double aligned = std::floor(static_cast<double>(accumulator[j]) * power_of_two(kProductFraction - largest));
    const double kept = even_odd && largest - own > 25 ? 0.0 : aligned;
    const double total = (sum + kept * (1 << (kSumFraction - kProductFraction))) * power_of_two(largest - kSumFraction);
    accumulator[j] = field == 0xff ? accumulator[j] : static_cast<float>(total);
  }
}

WARPWAVE_INLINE void scale_sum(const BlockScales& scales, int row, int block, int lanes, int column, PartialSum& sum) {
  for (int j = 0; j < kBlock; ++j)
    sum.exponent[j] += scales.a[row * scales.blocks + block] + scales.b[block * lanes + column + j];
}

WARPWAVE_MULTIVERSION
void add_group(const TileShape& shape, Grouping grouping, const Factors& a, const Factors& b, const BlockScales* scales,
               int row, int k, float* accumulator) {
  const int count = std::min(grouping.size, shape.depth - k);
  const float* a_significand = a.significand + row * shape.depth + k;
  const std::int32_t* a_exponent = a.exponent + row * shape.depth + k;
  for (int column = 0; column < shape.lanes; column += kBlock) {
    const float* b_significand = b.significand + k * shape.lanes + column;
    const std::int32_t* b_exponent = b.exponent + k * shape.lanes + column;
    PartialSum sum;
    if (grouping.even_odd) {
      PartialSum even, odd;
      sum_products(a_significand, a_exponent, b_significand, b_exponent, count, 2, shape.lanes, even);
      sum_products(a_significand + 1, a_exponent + 1, b_significand + shape.lanes, b_exponent + shape.lanes, count - 1,
                   2, shape.lanes, odd);
      join_even_odd(even, odd, sum);
    } else if (count == 8) {
      sum_products(a_significand, a_exponent, b_significand, b_exponent, 8, 1, shape.lanes, sum);
    } else {
      sum_products(a_significand, a_exponent, b_significand, b_exponent, count, 1, shape.lanes, sum);
    }
    if (scales != nullptr) scale_sum(*scales, row, k / kScaleBlock, shape.lanes, column, sum);
    add_to_accumulator(sum, grouping.even_odd, accumulator + column);
  }
}

// One output of one group whose factors or products are not all finite f32 numbers: IEEE rules decide in
// double, where every product is exact; a product of 2^128 or more is an infinity of its sign. Returns false
// when nothing is special.
bool special_output(const float* a, const float* b, int stride, int count, int scale, float& accumulator) {
  double sum = accumulator;
  bool up = false;
  bool down = false;
  for (int k = 0; k < count; ++k) {
    const double product = std::ldexp(static_cast<double>(a[k]) * b[k * stride], scale);
    sum += product;
    up = up || product >= 0x1p128;
    down = down || product <= -0x1p128;
  }
  if (!std::isfinite(sum)) {
    accumulator = static_cast<float>(sum);
    return true;
  }
  if (up && down)
    accumulator = std::numeric_limits<float>::quiet_NaN();
  else if (up || down)
    accumulator = up ? HUGE_VALF : -HUGE_VALF;
  return up || down;
}

int output_scale(const BlockScales* scales, int row, int block, int lanes, int column) {
  if (scales == nullptr) return 0;
  return scales->a[row * scales->blocks + block] + scales->b[block * lanes + column];
}

// add_group for tiles that hold specials: outputs that need it are computed apart, from the accumulator
// before.
void add_group_checked(const TileShape& shape, Grouping grouping, const Factors& a, const Factors& b,
                       const BlockScales* scales, int row, int k, float* accumulator) {
  float before[128];
  std::copy_n(accumulator, shape.lanes, before);
  add_group(shape, grouping, a, b, scales, row, k, accumulator);
  const int count = std::min(grouping.size, shape.depth - k);
  for (int column = 0; column < shape.lanes; ++column) {
    const int scale = output_scale(scales, row, k / kScaleBlock, shape.lanes, column);
    if (scale > kNanScale / 2)
      accumulator[column] = std::numeric_limits<float>::quiet_NaN();
    else if (special_output(a.value + row * shape.depth + k, b.value + k * shape.lanes + column, shape.lanes, count,
                            scale, before[column]))
      accumulator[column] = before[column];
  }
}

bool may_be_special(const TileShape& shape, const Factors& a, const Factors& b, const BlockScales* scales) {
  if (a.special || b.special) return true;
  int largest = a.max_exponent + b.max_exponent;
  if (scales != nullptr)
    largest += *std::max_element(scales->a, scales->a + shape.rows * scales->blocks) +
               *std::max_element(scales->b, scales->b + shape.lanes * scales->blocks);
  return largest >= 126;
}

// f32 = f32 + double, once rounded: the double sum is made odd when inexact, which keeps the second rounding
// right.
float add_rounded_once(float accumulator, double product) {
  const double sum = accumulator + product;
  if (!std::isfinite(sum)) return static_cast<float>(sum);
  const double back = sum - accumulator;
  const double error = (accumulator - (sum - back)) + (product - back);
  std::uint64_t bits = std::bit_cast<std::uint64_t>(sum);
  if (error != 0.0 && (bits & 1) == 0) bits += (error > 0.0) == (sum > 0.0) ? 1 : std::uint64_t(-1);
  return static_cast<float>(std::bit_cast<double>(bits));
}

void add_sequential(const TileShape& shape, const Factors& a, const Factors& b, const BlockScales* scales, int row,
                    float* accumulator) {
  for (int column = 0; column < shape.lanes; ++column)
    for (int k = 0; k < shape.depth; ++k) {
      const int scale = output_scale(scales, row, k / kScaleBlock, shape.lanes, column);
      const double product = static_cast<double>(a.value[row * shape.depth + k]) * b.value[k * shape.lanes + column];
      const double scaled =
          scale > kNanScale / 2 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(product, scale);
      accumulator[column] = add_rounded_once(accumulator[column], scaled);
    }
}

void finish(float* values, int count, bool saturate) {
  for (int at = 0; at < count; ++at) {
    if (std::isnan(values[at])) values[at] = std::bit_cast<float>(kMatrixNan);
    if (saturate && std::isinf(values[at])) values[at] = std::copysign(std::numeric_limits<float>::max(), values[at]);
  }
}

WARPWAVE_MULTIVERSION
void chain_f32(const TileShape& shape, const float* a, const float* b, float* accumulator) {
  for (int row = 0; row < shape.rows; ++row)
    for (int k = 0; k < shape.depth; ++k)
      for (int j = 0; j < shape.lanes; ++j)
        accumulator[row * shape.lanes + j] =
            __builtin_fmaf(a[row * shape.depth + k], b[k * shape.lanes + j], accumulator[row * shape.lanes + j]);
}

WARPWAVE_MULTIVERSION
void chain_f64(const TileShape& shape, const double* a, const double* b, double* accumulator) {
  for (int row = 0; row < shape.rows; ++row)
    for (int k = 0; k < shape.depth; ++k)
      for (int j = 0; j < shape.lanes; ++j)
        accumulator[row * shape.lanes + j] =
            __builtin_fma(a[row * shape.depth + k], b[k * shape.lanes + j], accumulator[row * shape.lanes + j]);
}

}  // namespace

void multiply_accumulate(const TileShape& shape, Grouping grouping, const Factors& a, const Factors& b,
                         const BlockScales* scales, float* accumulator, MatrixOptions options) {
  const bool checked = may_be_special(shape, a, b, scales);
  for (int row = 0; row < shape.rows; ++row) {
    float* out = accumulator + row * shape.lanes;
    if (options.rule == Accumulate::sequential_rne) {
      add_sequential(shape, a, b, scales, row, out);
      continue;
    }
    for (int k = 0; k < shape.depth; k += grouping.size) {
      if (checked)
        add_group_checked(shape, grouping, a, b, scales, row, k, out);
      else
        add_group(shape, grouping, a, b, scales, row, k, out);
    }
  }
  finish(accumulator, shape.rows * shape.lanes, options.saturate);
}

void multiply_accumulate_f32(const TileShape& shape, const float* a, const float* b, float* accumulator,
                             MatrixOptions options) {
  chain_f32(shape, a, b, accumulator);
  finish(accumulator, shape.rows * shape.lanes, options.saturate);
}

void multiply_accumulate_f64(const TileShape& shape, const double* a, const double* b, double* accumulator) {
  chain_f64(shape, a, b, accumulator);
  for (int at = 0; at < shape.rows * shape.lanes; ++at)
    if (std::isnan(accumulator[at])) accumulator[at] = std::bit_cast<double>(0x7ff8000000000000ull);
}

void multiply_accumulate_i8(const TileShape& shape, const std::int8_t* a, const std::int8_t* b,
                            std::int32_t* accumulator, bool saturate) {
  for (int row = 0; row < shape.rows; ++row)
    for (int j = 0; j < shape.lanes; ++j) {
      std::int64_t sum = accumulator[row * shape.lanes + j];
      for (int k = 0; k < shape.depth; ++k) sum += a[row * shape.depth + k] * b[k * shape.lanes + j];
      if (saturate)
        sum = std::clamp<std::int64_t>(sum, std::numeric_limits<std::int32_t>::min(),
                                       std::numeric_limits<std::int32_t>::max());
      accumulator[row * shape.lanes + j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum));
    }
}

}  // namespace amdsim::arith
