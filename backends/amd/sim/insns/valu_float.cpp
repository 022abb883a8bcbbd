// Single- and double-precision arithmetic. Denormal flushing and the rounding direction of MODE are applied around the
// lane functions by core/float_mode.hpp.
#include "../arith/division.hpp"
#include "../arith/minmax.hpp"
#include "../arith/multiversion.hpp"
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

// The faces of a cube map: the largest of three magnitudes, z before y before x (CDNA3 ISA, V_CUBEID_F32 and its kin).
template <auto Z, auto Y, auto X>
constexpr auto kFace = [](f32 x, f32 y, f32 z) {
  const f32 ax = __builtin_fabsf(x), ay = __builtin_fabsf(y), az = __builtin_fabsf(z);
  return az >= ax && az >= ay ? Z(x, y, z) : ay >= ax ? Y(x, y, z) : X(x, y, z);
};

void cube_maps(Registry& r) {
  r.add(vop<kFace<[](f32, f32, f32 z) { return z < 0 ? 5.0f : 4.0f; }, [](f32, f32 y, f32) { return y < 0 ? 3.0f : 2.0f; },
                  [](f32 x, f32, f32) { return x < 0 ? 1.0f : 0.0f; }>>("v_cubeid_f32"));
  r.add(vop<kFace<[](f32 x, f32, f32 z) { return z < 0 ? -x : x; }, [](f32 x, f32, f32) { return x; },
                  [](f32 x, f32, f32 z) { return x < 0 ? z : -z; }>>("v_cubesc_f32"));
  r.add(vop<kFace<[](f32, f32 y, f32) { return -y; }, [](f32, f32 y, f32 z) { return y < 0 ? -z : z; },
                  [](f32, f32 y, f32) { return -y; }>>("v_cubetc_f32"));
  r.add(vop<kFace<[](f32, f32, f32 z) { return 2.0f * z; }, [](f32, f32 y, f32) { return 2.0f * y; },
                  [](f32 x, f32, f32) { return 2.0f * x; }>>("v_cubema_f32"));
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

u32 exponent_of(u32 x) { return x >> 23 & 0xff; }

// Denominators and numerators far from any limit, in all lanes: the usual case, in which nothing is scaled.
WARPWAVE_MULTIVERSION bool quotients_are_tame(const u32* denominator, const u32* numerator) {
  u32 wild = 0;
  for (int l = 0; l < kLanes; ++l) {
    const u32 d = exponent_of(denominator[l]), n = exponent_of(numerator[l]);
    wild |= u32(d - 1 > 251) | u32(n - 24 > 230) | u32(n - d + 124 > 219);
  }
  return wild == 0;
}

template <class F>
void div_scale_body(LaneArgs& io) {
  if (std::is_same_v<F, f32> && quotients_are_tame(io.b, io.c)) {
    std::memcpy(io.d, io.a, sizeof(Row));
    io.mask_out = 0;
    return;
  }
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
  if (std::is_same_v<F, f32> && (io.mask_in & io.exec) == 0) return fma_body(io);
  for (int l = 0; l < kLanes; ++l)
    LaneType<F>::store(io.d, l,
                       div_fmas(LaneType<F>::load(io.a, l), LaneType<F>::load(io.b, l), LaneType<F>::load(io.c, l),
                                io.mask_in >> l & 1));
}
WARPWAVE_MULTIVERSION bool fix_signs(u32* d, const u32* quotient, const u32* denominator, const u32* numerator) {
  u32 nan = 0;
  for (int l = 0; l < kLanes; ++l) nan |= u32((quotient[l] & 0x7fffffffu) > 0x7f800000u);
  if (nan || !quotients_are_tame(denominator, numerator)) return false;
  for (int l = 0; l < kLanes; ++l)
    d[l] = (quotient[l] & 0x7fffffffu) | ((denominator[l] ^ numerator[l]) & 0x80000000u);
  return true;
}
template <class F>
void div_fixup_body(LaneArgs& io) {
  if (std::is_same_v<F, f32> && fix_signs(io.d, io.a, io.b, io.c)) return;
  vop_detail::lanes<[](F a, F b, F c) { return div_fixup(a, b, c); }>(io);
}

template <class F>
void division(Registry& r, const char* const (&names)[3]) {
  constexpr Ty t = LaneType<F>::ty;
  Desc scale = vop_raw(names[0], div_scale_body<F>, t, {t, t, t}, kCarryOut);
  scale.sdst = Ty::Mask;
  r.add(scale);
  r.add(vop_raw(names[1], div_fmas_body<F>, t, {t, t, t}, kMaskIn));
  r.add(vop_raw(names[2], div_fixup_body<F>, t, {t, t, t}));
}

}  // namespace

void register_valu_float(Registry& r) {
  single_arithmetic(r);
  double_arithmetic(r);
  rounding<f32>(r, {"v_floor_f32", "v_ceil_f32", "v_trunc_f32", "v_rndne_f32", "v_fract_f32"});
  rounding<f64>(r, {"v_floor_f64", "v_ceil_f64", "v_trunc_f64", "v_rndne_f64", "v_fract_f64"});
  exponents(r);
  cube_maps(r);
  division<f32>(r, {"v_div_scale_f32", "v_div_fmas_f32", "v_div_fixup_f32"});
  division<f64>(r, {"v_div_scale_f64", "v_div_fmas_f64", "v_div_fixup_f64"});
}

}  // namespace amdsim
