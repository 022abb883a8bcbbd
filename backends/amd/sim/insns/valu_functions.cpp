// The transcendental functions of f32, f16 and f64.
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
WARPWAVE_MULTIVERSION void log_f32(LaneArgs& io) { each_lane<f32, arith::log2>(io); }
WARPWAVE_MULTIVERSION void rcp_f32(LaneArgs& io) { each_lane<f32, arith::rcp>(io); }
WARPWAVE_MULTIVERSION void rsq_f32(LaneArgs& io) { each_lane<f32, arith::rsqrt>(io); }
WARPWAVE_MULTIVERSION void sqrt_f32(LaneArgs& io) { each_lane<f32, arith::sqrt>(io); }
WARPWAVE_MULTIVERSION void sin_f32(LaneArgs& io) { each_lane<f32, arith::sin>(io); }
WARPWAVE_MULTIVERSION void cos_f32(LaneArgs& io) { each_lane<f32, arith::cos>(io); }
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
  add("v_exp_f16", exp_f16, Ty::F16);
  add("v_log_f16", log_f16, Ty::F16);
  add("v_rcp_f16", rcp_f16, Ty::F16);
  add("v_rsq_f16", rsq_f16, Ty::F16);
  add("v_sqrt_f16", sqrt_f16, Ty::F16);
  add("v_sin_f16", sin_f16, Ty::F16);
  add("v_cos_f16", cos_f16, Ty::F16);
  add("v_rcp_f64", rcp_f64, Ty::F64);
  add("v_rsq_f64", rsq_f64, Ty::F64);
  add("v_sqrt_f64", sqrt_f64, Ty::F64);
}

}  // namespace amdsim
