// Packed 16-bit and packed f32 arithmetic, mixed-precision FMA and dot products. The core has applied op_sel,
// op_sel_hi, neg_lo and neg_hi to packed operands, so lambdas see plain halves.
#include "../arith/convert.hpp"
#include "../arith/half_ops.hpp"
#include "../arith/multiversion.hpp"
#include "vop_modes.hpp"

namespace amdsim {
namespace {

using namespace arith;

// ---- 16-bit integers

template <class T, auto F>
constexpr auto on_halves = [](pk16 a, pk16 b) { return pk16{u16(F(T(a.lo), T(b.lo))), u16(F(T(a.hi), T(b.hi)))}; };
template <class T, auto F>
constexpr auto on_halves3 =
    [](pk16 a, pk16 b, pk16 c) { return pk16{u16(F(T(a.lo), T(b.lo), T(c.lo))), u16(F(T(a.hi), T(b.hi), T(c.hi)))}; };

constexpr auto kAdd = [](i32 a, i32 b) { return a + b; };
constexpr auto kSub = [](i32 a, i32 b) { return a - b; };
constexpr auto kMad = [](i64 a, i64 b, i64 c) { return a * b + c; };
template <class T, auto F>
constexpr auto bounded = [](i32 a, i32 b) { return (saturate_to<T, i32>(F(a, b))); };
template <class T>
constexpr auto bounded_mad = [](i64 a, i64 b, i64 c) { return (saturate_to<T, i64>(a * b + c)); };

template <class T, auto F>
Desc clamped(const char* name) {
  return vop_clamp<on_halves<T, F>, on_halves<T, bounded<T, F>>>(name);
}

void integers(Registry& r) {
  const auto halves = [&r](Desc d) {
    d.shadow = shadow_packed;
    r.add(d);
  };
  halves(clamped<i16, kAdd>("v_pk_add_i16"));
  halves(clamped<u16, kAdd>("v_pk_add_u16"));
  halves(clamped<i16, kSub>("v_pk_sub_i16"));
  halves(clamped<u16, kSub>("v_pk_sub_u16"));
  halves(vop_clamp<on_halves3<i16, kMad>, on_halves3<i16, bounded_mad<i16>>>("v_pk_mad_i16"));
  halves(vop_clamp<on_halves3<u16, kMad>, on_halves3<u16, bounded_mad<u16>>>("v_pk_mad_u16"));
  halves(vop<on_halves<u16, [](u32 a, u32 b) { return a * b; }>>("v_pk_mul_lo_u16"));
  halves(vop<on_halves<u16, [](u32 a, u32 b) { return b << (a & 15); }>>("v_pk_lshlrev_b16"));
  halves(vop<on_halves<u16, [](u32 a, u32 b) { return (b >> (a & 15)); }>>("v_pk_lshrrev_b16"));
  halves(vop<on_halves<i16, [](i32 a, i32 b) { return (b >> (a & 15)); }>>("v_pk_ashrrev_i16"));
  halves(vop<on_halves<i16, [](i32 a, i32 b) { return a < b ? a : b; }>>("v_pk_min_i16"));
  halves(vop<on_halves<u16, [](i32 a, i32 b) { return a < b ? a : b; }>>("v_pk_min_u16"));
  halves(vop<on_halves<i16, [](i32 a, i32 b) { return a < b ? b : a; }>>("v_pk_max_i16"));
  halves(vop<on_halves<u16, [](i32 a, i32 b) { return a < b ? b : a; }>>("v_pk_max_u16"));
}

// ---- f16

template <auto F>
constexpr auto both = [](pkf16 a, pkf16 b) { return pkf16{F(a.lo, b.lo), F(a.hi, b.hi)}; };
template <auto F>
constexpr auto both3 = [](pkf16 a, pkf16 b, pkf16 c) { return pkf16{F(a.lo, b.lo, c.lo), F(a.hi, b.hi, c.hi)}; };
template <auto F>
constexpr auto both_slow = [](pkf16 a, pkf16 b, HalfMode m) { return pkf16{F(a.lo, b.lo, m), F(a.hi, b.hi, m)}; };
template <auto F>
constexpr auto both3_slow =
    [](pkf16 a, pkf16 b, pkf16 c, HalfMode m) { return pkf16{F(a.lo, b.lo, c.lo, m), F(a.hi, b.hi, c.hi, m)}; };

template <bool Ieee>
struct PkMin {
  pkf16 operator()(pkf16 a, pkf16 b) const { return {half_min(a.lo, b.lo, Ieee), half_min(a.hi, b.hi, Ieee)}; }
};
template <bool Ieee>
struct PkMax {
  pkf16 operator()(pkf16 a, pkf16 b) const { return {half_max(a.lo, b.lo, Ieee), half_max(a.hi, b.hi, Ieee)}; }
};

void halves(Registry& r) {
  const auto add_packed = [&r](Desc d) {
    d.shadow = shadow_packed;
    r.add(d);
  };
  constexpr auto sum = [](f16 a, f16 b, HalfMode m) { return add(a, b, m); };
  constexpr auto product = [](f16 a, f16 b, HalfMode m) { return mul(a, b, m); };
  constexpr auto fused = [](f16 a, f16 b, f16 c, HalfMode m) { return fma(a, b, c, m); };
  add_packed(vop_half<both<quick_add>, both_slow<sum>>("v_pk_add_f16"));
  add_packed(vop_half<both<quick_mul>, both_slow<product>>("v_pk_mul_f16"));
  add_packed(vop_half<both3<quick_fma>, both3_slow<fused>>("v_pk_fma_f16"));
  add_packed(vop_half_acc<both3<quick_fma>, both3_slow<fused>>("v_pk_fmac_f16"));
  add_packed(vop_ieee<PkMin>("v_pk_min_f16"));
  add_packed(vop_ieee<PkMax>("v_pk_max_f16"));
  add_packed(only(kGfx950, vop<both3<[](f16 a, f16 b, f16 c) { return half_minimum(half_minimum(a, b), c); }>>(
                               "v_pk_minimum3_f16")));
  add_packed(only(kGfx950, vop<both3<[](f16 a, f16 b, f16 c) { return half_maximum(half_maximum(a, b), c); }>>(
                               "v_pk_maximum3_f16")));
}

// ---- f32 pairs

WARPWAVE_MULTIVERSION
void pk_fma_rows(u32* d, const u32* a, const u32* b, const u32* c) {
  for (int l = 0; l < 2 * kLanes; ++l)
    d[l] = bits<u32>(with_nan_of<f32>(__builtin_fmaf(bits<f32>(a[l]), bits<f32>(b[l]), bits<f32>(c[l])),
                                      bits<f32>(a[l]), bits<f32>(b[l]), bits<f32>(c[l])));
}

// op_sel picks the register of a 64-bit source for the low result, op_sel of the second source for the high one.
void v_pk_mov_b32(LaneArgs& io) {
  alignas(64) u32 out[2][kLanes];
  const u8 sel = io.in->mod.op_sel;
  std::memcpy(out[0], io.a + (sel & 1 ? kLanes : 0), sizeof(Row));
  std::memcpy(out[1], io.b + (sel & 2 ? kLanes : 0), sizeof(Row));
  std::memcpy(io.d, out, sizeof out);
}

void singles(Registry& r) {
  const auto add_pair = [&r](Desc d) {
    d.shadow = shadow_packed_dwords;
    r.add(d);
  };
  add_pair(vop<[](pkf32 a, pkf32 b) { return pkf32{add(a.lo, b.lo), add(a.hi, b.hi)}; }>("v_pk_add_f32"));
  add_pair(vop<[](pkf32 a, pkf32 b) { return pkf32{mul(a.lo, b.lo), mul(a.hi, b.hi)}; }>("v_pk_mul_f32"));
  add_pair(with_body(vop<[](pkf32 a, pkf32 b, pkf32 c) { return pkf32{fma(a.lo, b.lo, c.lo), fma(a.hi, b.hi, c.hi)}; }>(
                      "v_pk_fma_f32"),
                  [](LaneArgs& io) { pk_fma_rows(io.d, io.a, io.b, io.c); }));
  Desc move = vop_raw("v_pk_mov_b32", v_pk_mov_b32, Ty::B64, {Ty::B64, Ty::B64});
  move.shadow = shadow_moved_dwords;
  r.add(move);
}

// ---- v_fma_mix: each source is an f32, or with op_sel_hi an f16 in the half that op_sel names; neg_hi means |x|.

f32 mixed(const Modifiers& m, const Operand& op, int i, u32 raw) {
  const bool half = m.op_sel_hi >> i & 1, high = m.op_sel >> i & 1;
  u32 b = half ? bits<u32>(arith::to_f32(f16{u16(high ? raw >> 16 : raw)})) : raw;
  if (half && !high) {  // what is written -x or |x| was applied to bit 31 of the register
    if (op.abs) b &= 0x7fffffffu;
    if (op.neg) b ^= 0x80000000u;
  }
  if (m.neg_hi >> i & 1) b &= 0x7fffffffu;
  if (m.neg_lo >> i & 1) b ^= 0x80000000u;
  return bits<f32>(b);
}
f32 clamped_to_unit(f32 x, bool dx10) {
  if (x != x) return dx10 ? 0.0f : x;
  return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x;
}

enum class MixTo { f32, low, high };
template <MixTo To>
void fma_mix_body(LaneArgs& io) {
  Modifiers m = io.in->mod;
  if (!m.has_op_sel_hi) m.op_sel_hi = 0;  // unlike packed arithmetic the default is f32 sources
  const HalfMode mode = half_mode(*io.mode);
  for (int l = 0; l < kLanes; ++l) {
    const Operand* src = io.in->src;
    f32 x = fma(mixed(m, src[0], 0, io.a[l]), mixed(m, src[1], 1, io.b[l]), mixed(m, src[2], 2, io.c[l]));
    if (m.clamp) x = clamped_to_unit(x, io.mode->dx10_clamp);
    if (To == MixTo::f32)
      io.d[l] = bits<u32>(x);
    else if (To == MixTo::low)
      io.d[l] = (io.d[l] & 0xffff0000u) | to_f16(x, mode).bits;
    else
      io.d[l] = (io.d[l] & 0xffffu) | u32(to_f16(x, mode).bits) << 16;
  }
}

void mixes(Registry& r) {
  const auto three = {Ty::B32, Ty::B32, Ty::B32};
  r.add(vop_raw("v_fma_mix_f32", fma_mix_body<MixTo::f32>, Ty::B32, three));
  Desc low = vop_raw("v_fma_mixlo_f16", fma_mix_body<MixTo::low>, Ty::B32, three, kReadsDst | kPartial);
  low.shadow = [](Wave& w, const Inst& in) { shadow_partial(w, in, 0x3); };
  r.add(low);
  Desc high = vop_raw("v_fma_mixhi_f16", fma_mix_body<MixTo::high>, Ty::B32, three, kReadsDst | kPartial);
  high.shadow = [](Wave& w, const Inst& in) { shadow_partial(w, in, 0xc); };
  r.add(high);
}

}  // namespace

void register_valu_packed(Registry& r) {
  integers(r);
  halves(r);
  singles(r);
  mixes(r);
}

}  // namespace amdsim
