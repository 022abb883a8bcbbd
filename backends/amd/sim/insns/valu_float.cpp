// Single- and double-precision arithmetic. Denormal flushing and the rounding direction of MODE are applied around the
// lane functions by core/float_mode.hpp.
#include "../arith/division.hpp"
#include "../arith/minmax.hpp"
#include "../arith/multiversion.hpp"
#include "../arith/transcendental.hpp"
#include "vop_modes.hpp"

namespace amdsim {
namespace {

using namespace arith;

template <bool Ieee>
struct Min {
  f32 operator()(f32 a, f32 b) const { return min_num(a, b, Ieee); }
};
template <bool Ieee>
struct Max {
  f32 operator()(f32 a, f32 b) const { return max_num(a, b, Ieee); }
};
template <bool Ieee>
struct Min64 {
  f64 operator()(f64 a, f64 b) const { return min_num(a, b, Ieee); }
};
template <bool Ieee>
struct Max64 {
  f64 operator()(f64 a, f64 b) const { return max_num(a, b, Ieee); }
};
template <bool Ieee>
struct Min3 {
  f32 operator()(f32 a, f32 b, f32 c) const { return min3(a, b, c, Ieee); }
};
template <bool Ieee>
struct Max3 {
  f32 operator()(f32 a, f32 b, f32 c) const { return max3(a, b, c, Ieee); }
};
template <bool Ieee>
struct Med3 {
  f32 operator()(f32 a, f32 b, f32 c) const { return med3(a, b, c, Ieee); }
};

// Fused multiply-add on whole rows, so that hosts with FMA use it (the library call gives the same bits).
WARPWAVE_MULTIVERSION
void fma_rows(u32* d, const u32* a, const u32* b, const u32* c) {
  for (int l = 0; l < kLanes; ++l)
    d[l] = bits<u32>(with_nan_of<f32>(__builtin_fmaf(bits<f32>(a[l]), bits<f32>(b[l]), bits<f32>(c[l])),
                                      bits<f32>(a[l]), bits<f32>(b[l]), bits<f32>(c[l])));
}
void fma_body(LaneArgs& io) { fma_rows(io.d, io.a, io.b, io.c); }
// v_fmamk_f32 dst, a, K, b computes a * K + b, which is the written order; v_fmaak_f32 a * b + K likewise.
Desc fused(const char* name, bool accumulates) {
  const auto operation = [](f32 a, f32 b, f32 c) { return fma(a, b, c); };
  return with_body(accumulates ? vop_acc<operation>(name) : vop<operation>(name), fma_body);
}

void single_arithmetic(Registry& r) {
  r.add(vop<[](f32 a, f32 b) { return add(a, b); }>("v_add_f32"));
  r.add(vop<[](f32 a, f32 b) { return sub(a, b); }>("v_sub_f32"));
  r.add(vop<[](f32 a, f32 b) { return sub(b, a); }>("v_subrev_f32"));
  r.add(vop<[](f32 a, f32 b) { return mul(a, b); }>("v_mul_f32"));
  r.add(vop<[](f32 a, f32 b) { return mul_legacy(a, b); }>("v_mul_legacy_f32"));
  r.add(fused("v_fma_f32", false));
  r.add(fused("v_fmamk_f32", false));
  r.add(fused("v_fmaak_f32", false));
  r.add(fused("v_fmac_f32", true));
  r.add(vop_ieee<Min>("v_min_f32"));
  r.add(vop_ieee<Max>("v_max_f32"));
  r.add(vop_ieee<Min3>("v_min3_f32"));
  r.add(vop_ieee<Max3>("v_max3_f32"));
  r.add(vop_ieee<Med3>("v_med3_f32"));
  r.add(only(kGfx950, vop<[](f32 a, f32 b, f32 c) { return minimum(minimum(a, b), c); }>("v_minimum3_f32")));
  r.add(only(kGfx950, vop<[](f32 a, f32 b, f32 c) { return maximum(maximum(a, b), c); }>("v_maximum3_f32")));
}

void double_arithmetic(Registry& r) {
  r.add(vop<[](f64 a, f64 b) { return add(a, b); }>("v_add_f64"));
  r.add(vop<[](f64 a, f64 b) { return mul(a, b); }>("v_mul_f64"));
  r.add(vop<[](f64 a, f64 b, f64 c) { return fma(a, b, c); }>("v_fma_f64"));
  r.add(vop_acc<[](f64 a, f64 b, f64 c) { return fma(a, b, c); }>("v_fmac_f64"));
  r.add(vop_ieee<Min64>("v_min_f64"));
  r.add(vop_ieee<Max64>("v_max_f64"));
}

void functions(Registry& r) {
  r.add(vop<[](f32 a) { return arith::exp2(a); }>("v_exp_f32", kTrans));
  r.add(vop<[](f32 a) { return arith::log2(a); }>("v_log_f32", kTrans));
  r.add(vop<[](f32 a) { return arith::exp2(a); }>("v_exp_legacy_f32", kTrans));
  r.add(vop<[](f32 a) { return arith::log2(a); }>("v_log_legacy_f32", kTrans));
  r.add(vop<[](f32 a) { return arith::rcp(a); }>("v_rcp_f32", kTrans));
  r.add(vop<[](f32 a) { return arith::rcp(a); }>("v_rcp_iflag_f32", kTrans));
  r.add(vop<[](f32 a) { return arith::rsqrt(a); }>("v_rsq_f32", kTrans));
  r.add(vop<[](f32 a) { return arith::sqrt(a); }>("v_sqrt_f32", kTrans));
  r.add(vop<[](f32 a) { return arith::sin(a); }>("v_sin_f32", kTrans));
  r.add(vop<[](f32 a) { return arith::cos(a); }>("v_cos_f32", kTrans));
  r.add(vop<[](f64 a) { return arith::rcp(a); }>("v_rcp_f64", kTrans));
  r.add(vop<[](f64 a) { return arith::rsqrt(a); }>("v_rsq_f64", kTrans));
  r.add(vop<[](f64 a) { return arith::sqrt(a); }>("v_sqrt_f64", kTrans));
}

template <class F>
void rounding(Registry& r, const char* const (&names)[5]) {
  r.add(vop<[](F a) { return integral<F>(std::floor, a); }>(names[0]));
  r.add(vop<[](F a) { return integral<F>(std::ceil, a); }>(names[1]));
  r.add(vop<[](F a) { return integral<F>(std::trunc, a); }>(names[2]));
  r.add(vop<[](F a) { return rndne(a); }>(names[3]));
  r.add(vop<[](F a) { return fract(a); }>(names[4]));
}

void exponents(Registry& r) {
  r.add(vop<[](f32 a, i32 n) { return arith::ldexp(a, n); }>("v_ldexp_f32"));
  r.add(vop<[](f64 a, i32 n) { return arith::ldexp(a, n); }>("v_ldexp_f64"));
  r.add(vop<[](f32 a) { return frexp_mant(a); }>("v_frexp_mant_f32"));
  r.add(vop<[](f64 a) { return frexp_mant(a); }>("v_frexp_mant_f64"));
  r.add(vop<[](f32 a) { return frexp_exp(a); }>("v_frexp_exp_i32_f32"));
  r.add(vop<[](f64 a) { return frexp_exp(a); }>("v_frexp_exp_i32_f64"));
}

template <class F>
void div_scale_body(LaneArgs& io) {
  u64 out = 0;
  for (int l = 0; l < kLanes; ++l) {
    const auto s = div_scale(LaneType<F>::load(io.a, l), LaneType<F>::load(io.b, l), LaneType<F>::load(io.c, l));
    LaneType<F>::store(io.d, l, s.value);
    out |= u64(s.vcc) << l;
  }
  io.mask_out = out;
}
template <class F>
void div_fmas_body(LaneArgs& io) {
  for (int l = 0; l < kLanes; ++l)
    LaneType<F>::store(io.d, l,
                       div_fmas(LaneType<F>::load(io.a, l), LaneType<F>::load(io.b, l), LaneType<F>::load(io.c, l),
                                io.mask_in >> l & 1));
}

template <class F>
void division(Registry& r, const char* const (&names)[3]) {
  constexpr Ty t = LaneType<F>::ty;
  Desc scale = vop_raw(names[0], div_scale_body<F>, t, {t, t, t}, kCarryOut);
  scale.sdst = Ty::Mask;
  r.add(scale);
  r.add(vop_raw(names[1], div_fmas_body<F>, t, {t, t, t}, kMaskIn));
  r.add(vop<[](F a, F b, F c) { return div_fixup(a, b, c); }>(names[2]));
}

}  // namespace

void register_valu_float(Registry& r) {
  single_arithmetic(r);
  double_arithmetic(r);
  functions(r);
  rounding<f32>(r, {"v_floor_f32", "v_ceil_f32", "v_trunc_f32", "v_rndne_f32", "v_fract_f32"});
  rounding<f64>(r, {"v_floor_f64", "v_ceil_f64", "v_trunc_f64", "v_rndne_f64", "v_fract_f64"});
  exponents(r);
  division<f32>(r, {"v_div_scale_f32", "v_div_fmas_f32", "v_div_fixup_f32"});
  division<f64>(r, {"v_div_scale_f64", "v_div_fmas_f64", "v_div_fixup_f64"});
}

}  // namespace amdsim
