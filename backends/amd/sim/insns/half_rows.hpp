// f16 arithmetic to nearest even on whole rows: widened to f32, computed there, narrowed once.
#pragma once

#include "../arith/half_ops.hpp"
#include "../arith/half_order.hpp"
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
WARPWAVE_MULTIVERSION_GCC void compute_wide(f32* out, const f32 (*in)[kLanes]) {
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

// What `Quick` does without NaNs on both halves, `F` does with them on one, and `Slow`, which gets a HalfMode after its
// operands, in a MODE other than nearest even without saturation.
template <arith::HalfOp Quick, auto F, auto Slow, int Sources>
void wide_half_body(LaneArgs& io) {
  if (half_is_plain(*io.mode)) {
    if (!arith::on_both_halves<Quick>(io.d, io.a, io.b, io.c)) return on_halves_at<F, Sources>(io.d, io, 0);
    clear_high_halves(io.d);
  } else if constexpr (Sources == 2) {
    half_lanes<Slow>(io, static_cast<f16 (*)(f16, f16)>(nullptr), std::make_index_sequence<2>{});
  } else {
    half_lanes<Slow>(io, static_cast<f16 (*)(f16, f16, f16)>(nullptr), std::make_index_sequence<3>{});
  }
}

// A function of codes (half_order.hpp) on whole rows: one half, or both.
template <auto F, int Sources>
WARPWAVE_INLINE u32 code_of(const LaneArgs& io, int l, u32 shift) {
  const u32 a = io.a[l] >> shift & 0xffffu, b = io.b[l] >> shift & 0xffffu;
  if constexpr (Sources == 2)
    return F(a, b);
  else
    return F(a, b, io.c[l] >> shift & 0xffffu);
}
template <auto F, int Sources>
WARPWAVE_MULTIVERSION_GCC void low_codes(LaneArgs& io) {
  const LaneArgs in = io;
  u32* d = io.d;
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l) d[l] = code_of<F, Sources>(in, l, 0);
}
template <auto F, int Sources>
WARPWAVE_MULTIVERSION_GCC void both_codes(LaneArgs& io) {
  const LaneArgs in = io;
  u32* d = io.d;
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l) d[l] = code_of<F, Sources>(in, l, 0) | code_of<F, Sources>(in, l, 16) << 16;
}
template <LaneFn InIeeeMode, LaneFn Otherwise>
void by_ieee_mode(LaneArgs& io) {
  if (io.mode->ieee)
    InIeeeMode(io);
  else
    Otherwise(io);
}

}  // namespace amdsim
