// Matrix-core arithmetic on whole tiles: the sums of products of one MFMA, without its register layout.
// Model of CDNA3: MMA-Sim (arXiv 2511.10909). Nothing is published for CDNA4.
// ASSUMPTION, here and nowhere else: CDNA4 sums as CDNA3 does, a longer K being split into the same groups in
// ascending k; f8f6f4 operands form groups of 16 as fp8 does, whose sum is scaled by the block scales before
// it meets the accumulator (CDNA4 ISA 7.2); SMFMAC groups the products of the stored (non-zero) elements of
// A.
#pragma once

#include <cstdint>

#include "mfma_factors.hpp"

namespace amdsim::arith {

// How the products of one output are added.
//   cdna3           aligned groups, round-down additions; the model of the hardware
//   sequential_rne  one fused multiply-add per k in f32; what other emulators do, for comparing with them
enum class Accumulate : std::uint8_t { cdna3, sequential_rne };

// The groups in which the matrix core adds products before they meet the accumulator.
struct Grouping {
  int size;       // products per group
  bool even_odd;  // fp8: even and odd products are aligned and summed apart, then joined
};
inline constexpr Grouping kHalfGroups{8, false};  // f16, bf16
inline constexpr Grouping kByteGroups{16, true};  // fp8, bf8 and the f8f6f4 formats
inline constexpr Grouping kXf32Groups{4, false};

// D[i][j] = C[i][j] + sum over k of A[i][k] * B[k][j]. A is rows x depth, B is depth x lanes, `accumulator`
// holds C and receives D, rows x lanes. `lanes` is a multiple of 16 (columns beyond N are padding).
struct TileShape {
  int rows;
  int lanes;
  int depth;
};

// E8M0 exponents for each block of 32 k: a[row * blocks + block], b[block * lanes + lane]; a NaN scale is
// kNanScale.
struct BlockScales {
  const std::int32_t* a;
  const std::int32_t* b;
  int blocks;
};
inline constexpr std::int32_t kNanScale = 1 << 20;
inline constexpr int kScaleBlock = 32;

struct MatrixOptions {
  Accumulate rule = Accumulate::cdna3;
  bool saturate = false;  // MODE.fp16_ovfl: overflow gives the largest finite value (CDNA4 ISA 7.1.2)
};

// NaN results are 0x7fc00000: the payload the hardware gives is not documented.
inline constexpr std::uint32_t kMatrixNan = 0x7fc00000;

void multiply_accumulate(const TileShape& shape, Grouping grouping, const Factors& a, const Factors& b,
                         const BlockScales* scales, float* accumulator, MatrixOptions options);

// f32 MFMA: a chain of fused multiply-adds in ascending k, whatever the rule.
void multiply_accumulate_f32(const TileShape& shape, const float* a, const float* b, float* accumulator,
                             MatrixOptions options);
void multiply_accumulate_f64(const TileShape& shape, const double* a, const double* b, double* accumulator);
void multiply_accumulate_i8(const TileShape& shape, const std::int8_t* a, const std::int8_t* b,
                            std::int32_t* accumulator, bool saturate);

}  // namespace amdsim::arith
