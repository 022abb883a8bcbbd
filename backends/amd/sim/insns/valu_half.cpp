// f16 arithmetic: VOP1, VOP2 and VOP3 forms on one value. The packed forms are in valu_packed.cpp.
#include "../arith/convert.hpp"
#include "../arith/division.hpp"
#include "../arith/half_ops.hpp"
#include "half_rows.hpp"
#include "vop_modes.hpp"

namespace amdsim {
namespace {

using namespace arith;

template <bool Ieee>
constexpr auto kMin = [](u32 a, u32 b) { return min_code<Ieee>(a, b); };
template <bool Ieee>
constexpr auto kMax = [](u32 a, u32 b) { return max_code<Ieee>(a, b); };
template <bool Ieee>
constexpr auto kMin3 = [](u32 a, u32 b, u32 c) { return min3_code<Ieee>(a, b, c); };
template <bool Ieee>
constexpr auto kMax3 = [](u32 a, u32 b, u32 c) { return max3_code<Ieee>(a, b, c); };
template <bool Ieee>
constexpr auto kMed3 = [](u32 a, u32 b, u32 c) { return med3_code<Ieee>(a, b, c); };

constexpr auto kAddSlow = [](f16 a, f16 b, HalfMode m) { return add(a, b, m); };
constexpr auto kSubSlow = [](f16 a, f16 b, HalfMode m) { return add(a, negated(b), m); };
constexpr auto kSubRevSlow = [](f16 a, f16 b, HalfMode m) { return add(b, negated(a), m); };
constexpr auto kMulSlow = [](f16 a, f16 b, HalfMode m) { return mul(a, b, m); };
constexpr auto kFmaSlow = [](f16 a, f16 b, f16 c, HalfMode m) { return fma(a, b, c, m); };

void arithmetic(Registry& r) {
  constexpr Ty t = Ty::F16;
  r.add(vop_raw("v_add_f16", wide_half_body<HalfOp::add, kWideAdd, kAddSlow, 2>, t, {t, t}));
  r.add(vop_raw("v_sub_f16", wide_half_body<HalfOp::sub, kWideSub, kSubSlow, 2>, t, {t, t}));
  r.add(vop_raw("v_subrev_f16", wide_half_body<HalfOp::sub_rev, kWideSubRev, kSubRevSlow, 2>, t, {t, t}));
  r.add(vop_raw("v_mul_f16", wide_half_body<HalfOp::mul, kWideMul, kMulSlow, 2>, t, {t, t}));
  r.add(keep_half<wide_half_body<HalfOp::fma, kWideFma, kFmaSlow, 3>>(vop_raw("v_fma_f16", nullptr, t, {t, t, t})));
  r.add(vop_raw("v_fma_legacy_f16", wide_half_body<HalfOp::fma, kWideFma, kFmaSlow, 3>, t, {t, t, t}));
  // v_mac, v_madmk and v_madak of f16 are unfused: the product is rounded first (CDNA3 ISA, VOP2).
  constexpr auto mad = [](f16 a, f16 b, f16 c) { return quick_add(quick_mul(a, b), c); };
  constexpr auto mad_slow = [](f16 a, f16 b, f16 c, HalfMode m) { return add(mul(a, b, m), c, m); };
  r.add(keep_half<half_body<mad, mad_slow>>(vop<mad>("v_mad_f16")));
  r.add(vop_half<mad, mad_slow>("v_mad_legacy_f16"));
  r.add(vop_half<mad, mad_slow>("v_madmk_f16"));
  r.add(vop_half<mad, mad_slow>("v_madak_f16"));
  r.add(vop_half_acc<mad, mad_slow>("v_mac_f16"));
  r.add(keep_half<vop_detail::lanes<[](f16 a, f16 b, f16 c) { return div_fixup(a, b, c); }>>(
      vop<[](f16 a, f16 b, f16 c) { return div_fixup(a, b, c); }>("v_div_fixup_f16")));
  r.add(vop<[](f16 a, f16 b, f16 c) { return div_fixup(a, b, c); }>("v_div_fixup_legacy_f16"));
  r.add(vop_half<[](f16 a, i16 n) { return arith::ldexp(a, n, HalfMode{}); },
                 [](f16 a, i16 n, HalfMode m) { return arith::ldexp(a, n, m); }>("v_ldexp_f16"));
}

void order(Registry& r) {
  constexpr Ty t = Ty::F16;
  r.add(vop_raw("v_min_f16", by_ieee_mode<low_codes<kMin<true>, 2>, low_codes<kMin<false>, 2>>, t, {t, t}));
  r.add(vop_raw("v_max_f16", by_ieee_mode<low_codes<kMax<true>, 2>, low_codes<kMax<false>, 2>>, t, {t, t}));
  const auto three = [&r]<LaneFn Body>(const char* name) {
    r.add(keep_half<Body>(vop_raw(name, nullptr, Ty::F16, {Ty::F16, Ty::F16, Ty::F16})));
  };
  three.operator()<by_ieee_mode<low_codes<kMin3<true>, 3>, low_codes<kMin3<false>, 3>>>("v_min3_f16");
  three.operator()<by_ieee_mode<low_codes<kMax3<true>, 3>, low_codes<kMax3<false>, 3>>>("v_max3_f16");
  three.operator()<by_ieee_mode<low_codes<kMed3<true>, 3>, low_codes<kMed3<false>, 3>>>("v_med3_f16");
}

void functions(Registry& r) {
  r.add(vop<[](f16 a) { return exactly(a, [](f32 x) { return integral<f32>(std::floor, x); }); }>("v_floor_f16"));
  r.add(vop<[](f16 a) { return exactly(a, [](f32 x) { return integral<f32>(std::ceil, x); }); }>("v_ceil_f16"));
  r.add(vop<[](f16 a) { return exactly(a, [](f32 x) { return integral<f32>(std::trunc, x); }); }>("v_trunc_f16"));
  r.add(vop<[](f16 a) { return exactly(a, [](f32 x) { return rndne(x); }); }>("v_rndne_f16"));
  r.add(vop_half<[](f16 a) { return half_fract(a, HalfMode{}); }, [](f16 a, HalfMode m) { return half_fract(a, m); }>(
      "v_fract_f16"));
  r.add(vop<[](f16 a) { return exactly(a, [](f32 x) { return frexp_mant(x); }); }>("v_frexp_mant_f16"));
  r.add(vop<[](f16 a) { return i16(frexp_exp(to_f32(a))); }>("v_frexp_exp_i16_f16"));
}

}  // namespace

void register_valu_half(Registry& r) {
  arithmetic(r);
  order(r);
  functions(r);
}

}  // namespace amdsim
