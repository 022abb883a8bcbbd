// Conversions between integers, f16, f32 and f64, and into normalised or packed integers.
#include "../arith/convert.hpp"
#include "../arith/division.hpp"
#include "../arith/multiversion.hpp"
#include "../arith/half_rows.hpp"
#include "vop_modes.hpp"

namespace amdsim {
namespace {

using namespace arith;

template <class I>
void int_to_half_body(LaneArgs& io) {
  const HalfMode mode = half_mode(*io.mode);
  for (int l = 0; l < kLanes; ++l) io.d[l] = u32(encode(kF16, f64(I(io.a[l])), mode.rounding, mode.overflow));
}

template <int Byte>
Desc from_byte(const char* name) {
  Desc d = vop<[](u32 a) { return (f32(a >> (8 * Byte) & 0xff)); }>(name);
  d.shadow = [](Wave& w, const Inst& in) { shadow_one_byte(w, in, Byte); };
  return d;
}

constexpr auto kNarrow = [](f32 a) { return to_f16(a); };
constexpr auto kNarrowSlow = [](f32 a, HalfMode m) { return to_f16(a, m); };

void integers(Registry& r) {
  r.add(vop<[](i32 a) { return f32(a); }>("v_cvt_f32_i32"));
  r.add(vop<[](u32 a) { return f32(a); }>("v_cvt_f32_u32"));
  r.add(vop<[](i32 a) { return f64(a); }>("v_cvt_f64_i32"));
  r.add(vop<[](u32 a) { return f64(a); }>("v_cvt_f64_u32"));
  r.add(vop<[](f32 a) { return (to_int<i32>(a)); }>("v_cvt_i32_f32"));
  r.add(vop<[](f32 a) { return (to_int<u32>(a)); }>("v_cvt_u32_f32"));
  r.add(vop<[](f64 a) { return (to_int<i32>(a)); }>("v_cvt_i32_f64"));
  r.add(vop<[](f64 a) { return (to_int<u32>(a)); }>("v_cvt_u32_f64"));
  r.add(vop<[](f16 a) { return (to_int<i16>(a)); }>("v_cvt_i16_f16"));
  r.add(vop<[](f16 a) { return (to_int<u16>(a)); }>("v_cvt_u16_f16"));
  r.add(vop_raw("v_cvt_f16_i16", int_to_half_body<i16>, Ty::F16, {Ty::B16}));
  r.add(vop_raw("v_cvt_f16_u16", int_to_half_body<u16>, Ty::F16, {Ty::B16}));
  r.add(vop<[](f32 a) { return (to_int<i32>(f32(std::floor(a)))); }>("v_cvt_flr_i32_f32"));
  r.add(vop<[](f32 a) { return (to_int<i32>(f32(std::floor(a + 0.5f)))); }>("v_cvt_rpi_i32_f32"));
  r.add(vop<[](u32 a) { return (f32(i32(a << 28) >> 28) * 0.0625f); }>("v_cvt_off_f32_i4"));
  r.add(from_byte<0>("v_cvt_f32_ubyte0"));
  r.add(from_byte<1>("v_cvt_f32_ubyte1"));
  r.add(from_byte<2>("v_cvt_f32_ubyte2"));
  r.add(from_byte<3>("v_cvt_f32_ubyte3"));
}

void floats(Registry& r) {
  r.add(vop_half<kNarrow, kNarrowSlow>("v_cvt_f16_f32"));
  r.add(vop<[](f16 a) { return arith::to_f32(a); }>("v_cvt_f32_f16"));
  r.add(vop<[](f64 a) { return arith::to_f32(a); }>("v_cvt_f32_f64"));
  r.add(vop<[](f32 a) { return to_f64(a); }>("v_cvt_f64_f32"));
  r.add(only(kGfx950, vop<[](bf16 a) { return arith::to_f32(a); }>("v_cvt_f32_bf16")));
}

WARPWAVE_INLINE u32 pair(u16 low, u16 high) { return u32(low) | u32(high) << 16; }

const f32* as_floats(const u32* row) { return reinterpret_cast<const f32*>(row); }

// Rounds towards zero whatever MODE says; overflow therefore gives the largest finite value.
void pack_toward_zero_body(LaneArgs& io) {
  narrow_pairs_to_halves(io.d, as_floats(io.a), as_floats(io.b), Narrowing::towards_zero);
}
void pack_half_body(LaneArgs& io) {
  if (!io.mode->fp16_ovfl) return narrow_pairs_to_halves(io.d, as_floats(io.a), as_floats(io.b), Narrowing::nearest);
  const HalfMode mode{Rounding::nearest_even, Overflow::saturate};
  for (int l = 0; l < kLanes; ++l)
    io.d[l] = pair(to_f16(bits<f32>(io.a[l]), mode).bits, to_f16(bits<f32>(io.b[l]), mode).bits);
}

void packed(Registry& r) {
  const auto halves = [&r](Desc d) {
    d.shadow = shadow_pair;
    r.add(d);
  };
  halves(vop_raw("v_cvt_pkrtz_f16_f32", pack_toward_zero_body, Ty::B32, {Ty::F32, Ty::F32}));
  halves(vop<[](f32 a, f32 b) { return pair(u16(to_snorm16(a)), u16(to_snorm16(b))); }>("v_cvt_pknorm_i16_f32"));
  halves(vop<[](f32 a, f32 b) { return pair(to_unorm16(a), to_unorm16(b)); }>("v_cvt_pknorm_u16_f32"));
  halves(vop<[](f16 a, f16 b) { return pair(u16(to_snorm16(arith::to_f32(a))), u16(to_snorm16(arith::to_f32(b)))); }>(
      "v_cvt_pknorm_i16_f16"));
  halves(vop<[](f16 a, f16 b) { return pair(to_unorm16(arith::to_f32(a)), to_unorm16(arith::to_f32(b))); }>(
      "v_cvt_pknorm_u16_f16"));
  halves(
      vop<[](u32 a, u32 b) { return (pair(saturate_to<u16, u32>(a), saturate_to<u16, u32>(b))); }>("v_cvt_pk_u16_u32"));
  halves(vop<[](i32 a, i32 b) { return (pair(u16(saturate_to<i16, i32>(a)), u16(saturate_to<i16, i32>(b)))); }>(
      "v_cvt_pk_i16_i32"));
  halves(only(kGfx950, vop_raw("v_cvt_pk_f16_f32", pack_half_body, Ty::B32, {Ty::F32, Ty::F32})));
  halves(only(kGfx950, vop<[](f32 a, f32 b) { return pair(to_bf16(a).bits, to_bf16(b).bits); }>("v_cvt_pk_bf16_f32")));
  r.add(vop<[](f16 a) { return to_snorm16(arith::to_f32(a)); }>("v_cvt_norm_i16_f16"));
  r.add(vop<[](f16 a) { return to_unorm16(arith::to_f32(a)); }>("v_cvt_norm_u16_f16"));
  r.add(vop<[](f32 a, u32 at, u32 old) {
    const u32 shift = 8 * (at & 3);
    return (old & ~(0xffu << shift)) | u32(saturate_to<u8, i32>(to_int<i32>(a))) << shift;
  }>("v_cvt_pk_u8_f32"));
}

}  // namespace

void register_valu_cvt(Registry& r) {
  integers(r);
  floats(r);
  packed(r);
}

}  // namespace amdsim
