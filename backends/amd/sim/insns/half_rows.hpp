// f16 arithmetic to nearest even on whole rows: widened to f32, computed there, narrowed once.
#pragma once

#include "../arith/half_ops.hpp"
#include "../arith/half_rows.hpp"
#include "vop_modes.hpp"

namespace amdsim {

inline constexpr auto kWideAdd = [](f32 a, f32 b) { return arith::add(a, b); };
inline constexpr auto kWideSub = [](f32 a, f32 b) { return arith::add(a, -b); };
inline constexpr auto kWideSubRev = [](f32 a, f32 b) { return arith::add(b, -a); };
inline constexpr auto kWideMul = [](f32 a, f32 b) { return arith::mul(a, b); };
inline constexpr auto kWideFma = [](f32 a, f32 b, f32 c) { return arith::wide_fma(a, b, c); };

// F is one of the above, or has their two properties: rounding its f32 result to f16 rounds the exact result once, and
// its NaNs are those of the operation.
template <auto F, int Sources>
WARPWAVE_MULTIVERSION_TEMPLATE void compute_wide(f32* out, const f32 (*in)[kLanes]) {
  for (int l = 0; l < kLanes; ++l) {
    if constexpr (Sources == 2)
      out[l] = F(in[0][l], in[1][l]);
    else
      out[l] = F(in[0][l], in[1][l], in[2][l]);
  }
}

// The halves at bit `shift` of the sources, into the low halves of `out`.
template <auto F, int Sources>
void on_halves_at(u32* out, const LaneArgs& io, u32 shift) {
  alignas(64) f32 in[Sources][kLanes], value[kLanes];
  const u32* const rows[3] = {io.a, io.b, io.c};
  for (int i = 0; i < Sources; ++i) arith::widen_halves(in[i], rows[i], shift);
  compute_wide<F, Sources>(value, in);
  arith::narrow_to_halves(out, value);
}

// One f16; MODE other than nearest even without saturation takes `Slow`, which gets a HalfMode after its operands.
template <auto F, auto Slow, int Sources>
void wide_half_body(LaneArgs& io) {
  if (half_is_plain(*io.mode)) return on_halves_at<F, Sources>(io.d, io, 0);
  if constexpr (Sources == 2)
    half_lanes<Slow>(io, static_cast<f16 (*)(f16, f16)>(nullptr), std::make_index_sequence<2>{});
  else
    half_lanes<Slow>(io, static_cast<f16 (*)(f16, f16, f16)>(nullptr), std::make_index_sequence<3>{});
}

}  // namespace amdsim
