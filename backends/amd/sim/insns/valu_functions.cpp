// The transcendental functions of f32, f16 and f64.
#include <vector>

#include "../arith/function_rows.hpp"
#include "../arith/transcendental.hpp"
#include "vop_modes.hpp"

namespace amdsim {
namespace {

template <class F, F (*Function)(F)>
WARPWAVE_INLINE void each_lane(LaneArgs& io) {
  u32* d = io.d;
  const u32* a = io.a;
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l) LaneType<F>::store(d, l, Function(LaneType<F>::load(a, l)));
}

// One function each, as Clang has no multiversioned templates and these need the host's FMA.
WARPWAVE_MULTIVERSION void exp_f32(LaneArgs& io) { each_lane<f32, arith::exp2>(io); }
void log_f32(LaneArgs& io) { arith::log2_row(io.d, io.a); }
WARPWAVE_MULTIVERSION void rcp_f32(LaneArgs& io) { each_lane<f32, arith::rcp>(io); }
void rsq_f32(LaneArgs& io) { arith::rsqrt_row(io.d, io.a); }
WARPWAVE_MULTIVERSION void sqrt_f32(LaneArgs& io) { each_lane<f32, arith::sqrt>(io); }
void sin_f32(LaneArgs& io) { arith::sin_row(io.d, io.a); }
void cos_f32(LaneArgs& io) { arith::cos_row(io.d, io.a); }
WARPWAVE_MULTIVERSION void exp_f16(LaneArgs& io) { each_lane<f16, arith::exp2>(io); }
WARPWAVE_MULTIVERSION void log_f16(LaneArgs& io) { each_lane<f16, arith::log2>(io); }
WARPWAVE_MULTIVERSION void rcp_f16(LaneArgs& io) { each_lane<f16, arith::rcp>(io); }
WARPWAVE_MULTIVERSION void rsq_f16(LaneArgs& io) { each_lane<f16, arith::rsqrt>(io); }
WARPWAVE_MULTIVERSION void sqrt_f16(LaneArgs& io) { each_lane<f16, arith::sqrt>(io); }
WARPWAVE_MULTIVERSION void sin_f16(LaneArgs& io) { each_lane<f16, arith::sin>(io); }
WARPWAVE_MULTIVERSION void cos_f16(LaneArgs& io) { each_lane<f16, arith::cos>(io); }
WARPWAVE_MULTIVERSION void rcp_f64(LaneArgs& io) { each_lane<f64, arith::rcp>(io); }
WARPWAVE_MULTIVERSION void rsq_f64(LaneArgs& io) { each_lane<f64, arith::rsqrt>(io); }
WARPWAVE_MULTIVERSION void sqrt_f64(LaneArgs& io) { each_lane<f64, arith::sqrt>(io); }

// All results of a function of one f16, computed when it is first executed: a look-up is faster than the arithmetic.
template <LaneFn Compute>
const u16* half_table() {
  static const std::vector<u16> table = [] {
    std::vector<u16> all(1u << 16);
    alignas(64) u32 row[kLanes];
    LaneArgs io;
    io.d = row, io.a = row;
    for (u32 first = 0; first < all.size(); first += kLanes) {
      for (u32 l = 0; l < kLanes; ++l) row[l] = first + l;
      Compute(io);
      for (u32 l = 0; l < kLanes; ++l) all[first + l] = u16(row[l]);
    }
    return all;
  }();
  return table.data();
}
template <LaneFn Compute>
void looked_up(LaneArgs& io) {
  const u16* const table = half_table<Compute>();
  for (int l = 0; l < kLanes; ++l) io.d[l] = table[io.a[l] & 0xffffu];
}

}  // namespace

void register_valu_functions(Registry& r) {
  const auto add = [&r](const char* name, LaneFn body, Ty type) { r.add(vop_raw(name, body, type, {type}, kTrans)); };
  add("v_exp_f32", exp_f32, Ty::F32);
  add("v_exp_legacy_f32", exp_f32, Ty::F32);
  add("v_log_f32", log_f32, Ty::F32);
  add("v_log_legacy_f32", log_f32, Ty::F32);
  add("v_rcp_f32", rcp_f32, Ty::F32);
  add("v_rcp_iflag_f32", rcp_f32, Ty::F32);
  add("v_rsq_f32", rsq_f32, Ty::F32);
  add("v_sqrt_f32", sqrt_f32, Ty::F32);
  add("v_sin_f32", sin_f32, Ty::F32);
  add("v_cos_f32", cos_f32, Ty::F32);
  add("v_exp_f16", looked_up<exp_f16>, Ty::F16);
  add("v_log_f16", looked_up<log_f16>, Ty::F16);
  add("v_rcp_f16", looked_up<rcp_f16>, Ty::F16);
  add("v_rsq_f16", looked_up<rsq_f16>, Ty::F16);
  add("v_sqrt_f16", looked_up<sqrt_f16>, Ty::F16);
  add("v_sin_f16", looked_up<sin_f16>, Ty::F16);
  add("v_cos_f16", looked_up<cos_f16>, Ty::F16);
  add("v_rcp_f64", rcp_f64, Ty::F64);
  add("v_rsq_f64", rsq_f64, Ty::F64);
  add("v_sqrt_f64", sqrt_f64, Ty::F64);
}

}  // namespace amdsim
