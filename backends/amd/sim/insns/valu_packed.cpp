// Packed 16-bit and packed f32 arithmetic, mixed-precision FMA and dot products. The core has applied op_sel,
// op_sel_hi, neg_lo and neg_hi to packed operands, so lambdas see plain halves.
#include "../arith/convert.hpp"
#include "../arith/half_ops.hpp"
#include "../arith/multiversion.hpp"
#include "half_rows.hpp"
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
constexpr auto both_slow = [](pkf16 a, pkf16 b, HalfMode m) { return pkf16{F(a.lo, b.lo, m), F(a.hi, b.hi, m)}; };
template <auto F>
constexpr auto both3_slow =
    [](pkf16 a, pkf16 b, pkf16 c, HalfMode m) { return pkf16{F(a.lo, b.lo, c.lo, m), F(a.hi, b.hi, c.hi, m)}; };

template <HalfOp Quick, auto F, auto Slow, int Sources>
void packed_half_body(LaneArgs& io) {
  using Half = pkf16;
  if (half_is_plain(*io.mode)) {
    if (on_both_halves<Quick>(io.d, io.a, io.b, io.c)) return;
    alignas(64) u32 low[kLanes], high[kLanes];
    on_halves_at<F, Sources>(low, io, 0);
    on_halves_at<F, Sources>(high, io, 16);
    for (int l = 0; l < kLanes; ++l) io.d[l] = low[l] | high[l] << 16;
  } else if constexpr (Sources == 2) {
    half_lanes<both_slow<Slow>>(io, static_cast<Half (*)(Half, Half)>(nullptr), std::make_index_sequence<2>{});
  } else {
    half_lanes<both3_slow<Slow>>(io, static_cast<Half (*)(Half, Half, Half)>(nullptr), std::make_index_sequence<3>{});
  }
}

template <bool Ieee>
constexpr auto kMin = [](u32 a, u32 b) { return min_code<Ieee>(a, b); };
template <bool Ieee>
constexpr auto kMax = [](u32 a, u32 b) { return max_code<Ieee>(a, b); };
template <bool Largest>
constexpr auto kExtreme3 = [](u32 a, u32 b, u32 c) { return extreme3_code<Largest>(a, b, c); };

void halves(Registry& r) {
  constexpr auto sum = [](f16 a, f16 b, HalfMode m) { return add(a, b, m); };
  constexpr auto product = [](f16 a, f16 b, HalfMode m) { return mul(a, b, m); };
  constexpr auto fused = [](f16 a, f16 b, f16 c, HalfMode m) { return fma(a, b, c, m); };
  constexpr Ty t = Ty::PkF16;
  const auto packed = [](const char* name, LaneFn body, std::initializer_list<Ty> sources, u32 flags = 0) {
    Desc d = vop_raw(name, body, Ty::PkF16, sources, flags);
    d.shadow = shadow_packed;
    return d;
  };
  r.add(packed("v_pk_add_f16", packed_half_body<HalfOp::add, kWideAdd, sum, 2>, {t, t}));
  r.add(packed("v_pk_mul_f16", packed_half_body<HalfOp::mul, kWideMul, product, 2>, {t, t}));
  r.add(packed("v_pk_fma_f16", packed_half_body<HalfOp::fma, kWideFma, fused, 3>, {t, t, t}));
  Desc accumulating = packed("v_pk_fmac_f16", packed_half_body<HalfOp::fma, kWideFma, fused, 3>, {t, t}, kReadsDst);
  accumulating.src[2] = t;  // the old destination, not written in the assembly
  r.add(accumulating);
  r.add(packed("v_pk_min_f16", by_ieee_mode<both_codes<kMin<true>, 2>, both_codes<kMin<false>, 2>>, {t, t}));
  r.add(packed("v_pk_max_f16", by_ieee_mode<both_codes<kMax<true>, 2>, both_codes<kMax<false>, 2>>, {t, t}));
  r.add(only(kGfx950, packed("v_pk_minimum3_f16", both_codes<kExtreme3<false>, 3>, {t, t, t})));
  r.add(only(kGfx950, packed("v_pk_maximum3_f16", both_codes<kExtreme3<true>, 3>, {t, t, t})));
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

// Source i as 64 f32: its own row, or `room`.
const f32* mixed(f32* room, const u32* raw, const Modifiers& m, const Operand& op, int i) {
  const bool half = m.op_sel_hi >> i & 1, high = m.op_sel >> i & 1;
  const bool late = half && !high;  // what is written -x or |x| was applied to bit 31 of the register
  const bool abs = (late && op.abs) || m.neg_hi >> i & 1;
  const bool neg = (late && op.neg && !(m.neg_hi >> i & 1)) != bool(m.neg_lo >> i & 1);
  const f32* wide = reinterpret_cast<const f32*>(raw);
  if (half) arith::widen_halves(room, raw, high ? 16 : 0), wide = room;
  if (!abs && !neg) return wide;
  const u32 keep = abs ? 0x7fffffffu : ~0u, flip = neg ? 0x80000000u : 0;
  for (int l = 0; l < kLanes; ++l) room[l] = bits<f32>((bits<u32>(wide[l]) & keep) ^ flip);
  return room;
}
WARPWAVE_INLINE f32 clamped_to_unit(f32 x, bool dx10) {
  const f32 below = x < 0.0f ? 0.0f : x, bounded = below > 1.0f ? 1.0f : below;
  return x == x ? bounded : dx10 ? 0.0f : x;
}

WARPWAVE_MULTIVERSION void fused_rows(f32* out, const f32* a, const f32* b, const f32* c) {
  for (int l = 0; l < kLanes; ++l) out[l] = fma(a[l], b[l], c[l]);
}

void mixed_fma(const LaneArgs& io, f32* out) {
  Modifiers m = io.in->mod;
  if (!m.has_op_sel_hi) m.op_sel_hi = 0;  // unlike packed arithmetic the default is f32 sources
  alignas(64) f32 room[3][kLanes];
  const u32* const sources[3] = {io.a, io.b, io.c};
  const f32* rows[3];
  for (int i = 0; i < 3; ++i) rows[i] = mixed(room[i], sources[i], m, io.in->src[i], i);
  fused_rows(out, rows[0], rows[1], rows[2]);
  if (m.clamp)
    for (int l = 0; l < kLanes; ++l) out[l] = clamped_to_unit(out[l], io.mode->dx10_clamp);
}

enum class MixTo { f32, low, high };
template <MixTo To>
void fma_mix_body(LaneArgs& io) {
  alignas(64) f32 value[kLanes];
  mixed_fma(io, value);
  if (To == MixTo::f32) {
    std::memcpy(io.d, value, sizeof value);
    return;
  }
  alignas(64) u32 half[kLanes];
  const HalfMode mode = half_mode(*io.mode);
  if (half_is_plain(*io.mode))
    arith::narrow_to_halves(half, value);
  else
    for (int l = 0; l < kLanes; ++l) half[l] = to_f16(value[l], mode).bits;
  const u32 keep = To == MixTo::low ? 0xffff0000u : 0xffffu, shift = To == MixTo::low ? 0 : 16;
  for (int l = 0; l < kLanes; ++l) io.d[l] = (io.d[l] & keep) | half[l] << shift;
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
