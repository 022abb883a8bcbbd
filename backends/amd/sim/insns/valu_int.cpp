// 32- and 64-bit integer arithmetic, shifts and carries. Semantics: CDNA3/CDNA4 ISA, VOP2 and VOP3 pseudo-code.
#include <limits>

#include "../arith/convert.hpp"
#include "vop_modes.hpp"

namespace amdsim {
namespace {

i32 low24(u32 x) { return static_cast<i32>(x << 8) >> 8; }

template <class T>
T saturated(i64 x) {
  return arith::saturate_to<T, i64>(x);
}

// Sums and differences of 32 bits with a carry or borrow: lane l's comes from mask_in and goes to mask_out.
enum class Carried { sum, difference, reversed };
template <Carried Op>
WARPWAVE_MULTIVERSION_GCC void carry_body(LaneArgs& io) {
  alignas(64) u32 in[kLanes], out[kLanes];
  spread_mask(io.mask_in, in);
  u32* d = io.d;
  const u32 *left = Op == Carried::reversed ? io.b : io.a, *right = Op == Carried::reversed ? io.a : io.b;
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l) {
    const u32 a = left[l], b = right[l];
    if constexpr (Op == Carried::sum) {
      const u32 part = a + b, sum = part + in[l];
      d[l] = sum, out[l] = u32(part < a) | u32(sum < part);
    } else {
      const u32 part = a - b;
      d[l] = part - in[l], out[l] = u32(a < b) | u32(part < in[l]);
    }
  }
  io.mask_out = gather_mask(out);
}
template <Carried Op>
Desc carry(const char* name, bool in) {
  Desc d = in ? vop_raw(name, carry_body<Op>, Ty::B32, {Ty::B32, Ty::B32, Ty::Mask}, kCarryOut | kMaskIn)
              : vop_raw(name, carry_body<Op>, Ty::B32, {Ty::B32, Ty::B32}, kCarryOut);
  d.sdst = Ty::Mask;
  return d;
}

// Bit 32 of the 64-bit sum of two pairs of words, and the pair. Of signed operands the carry is bit 64 of the sum.
template <class Half>
WARPWAVE_MULTIVERSION_GCC void mad_wide_body(LaneArgs& io) {
  using Full = std::conditional_t<std::is_signed_v<Half>, i64, u64>;
  alignas(64) u32 low[kLanes], high[kLanes], out[kLanes];
  const u32 *a = io.a, *b = io.b, *c = io.c;
  u32* d = io.d;
  for (int l = 0; l < kLanes; ++l) low[l] = a[l] * b[l];
  for (int l = 0; l < kLanes; ++l) high[l] = u32(u64(Full(Half(a[l])) * Full(Half(b[l]))) >> 32);
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l) {
    const u32 addend = c[kLanes + l], sum = low[l] + c[l], part = high[l] + addend, top = part + u32(sum < low[l]);
    const u32 signs = std::is_signed_v<Half> ? (high[l] ^ addend) >> 31 : 0u;
    out[l] = (u32(part < addend) | u32(top < part)) ^ signs;
    d[l] = sum, d[kLanes + l] = top;
  }
  io.mask_out = gather_mask(out);
}

Desc mad_wide(const char* name, LaneFn body) {
  Desc d = vop_raw(name, body, Ty::B64, {Ty::B32, Ty::B32, Ty::B64}, kCarryOut);
  d.sdst = Ty::Mask;
  d.shadow = shadow_upward;
  return d;
}

// A byte of these results depends on bytes of the sources at and below it.
void upward(Registry& r, Desc d) {
  d.shadow = shadow_upward;
  r.add(d);
}

void add_and_subtract(Registry& r) {
  upward(r, vop_clamp<[](u32 a, u32 b) { return a + b; }, [](u32 a, u32 b) { return (saturated<u32>(i64(a) + b)); }>(
      "v_add_u32"));
  upward(r, vop_clamp<[](u32 a, u32 b) { return a - b; }, [](u32 a, u32 b) { return (saturated<u32>(i64(a) - b)); }>(
      "v_sub_u32"));
  upward(r, vop_clamp<[](u32 a, u32 b) { return b - a; }, [](u32 a, u32 b) { return (saturated<u32>(i64(b) - a)); }>(
      "v_subrev_u32"));
  upward(r, vop_clamp<[](u32 a, u32 b) { return i32(a + b); },
                  [](u32 a, u32 b) { return (saturated<i32>(i64(i32(a)) + i32(b))); }>("v_add_i32"));
  upward(r, vop_clamp<[](u32 a, u32 b) { return i32(a - b); },
                  [](u32 a, u32 b) { return (saturated<i32>(i64(i32(a)) - i32(b))); }>("v_sub_i32"));
  upward(r, vop<[](u32 a, u32 b, u32 c) { return a + b + c; }>("v_add3_u32"));
  upward(r, vop<[](u32 a, u32 b, u32 c) { return (a << (b & 31)) + c; }>("v_lshl_add_u32"));
  r.add(vop<[](u32 a, u32 b, u32 c) { return (a + b) << (c & 31); }>("v_add_lshl_u32"));
  r.add(vop<[](u32 a, u32 b, u32 c) { return (a ^ b) + c; }>("v_xad_u32"));
  upward(r, vop<[](u64 a, u32 b, u64 c) { return (a << (b & 7)) + c; }>("v_lshl_add_u64"));
  r.add(carry<Carried::sum>("v_add_co_u32", false));
  r.add(carry<Carried::difference>("v_sub_co_u32", false));
  r.add(carry<Carried::reversed>("v_subrev_co_u32", false));
  r.add(carry<Carried::sum>("v_addc_co_u32", true));
  r.add(carry<Carried::difference>("v_subb_co_u32", true));
  r.add(carry<Carried::reversed>("v_subbrev_co_u32", true));
}

void multiply(Registry& r) {
  upward(r, vop<[](u32 a, u32 b) { return a * b; }>("v_mul_lo_u32"));
  r.add(vop<[](u32 a, u32 b) { return (u32(u64(a) * b >> 32)); }>("v_mul_hi_u32"));
  r.add(vop<[](i32 a, i32 b) { return (i32(i64(a) * b >> 32)); }>("v_mul_hi_i32"));
  upward(r, vop<[](u32 a, u32 b) { return (a & 0xffffff) * (b & 0xffffff); }>("v_mul_u32_u24"));
  upward(r, vop<[](u32 a, u32 b) { return u32(low24(a)) * u32(low24(b)); }>("v_mul_i32_i24"));
  r.add(vop<[](u32 a, u32 b) { return (u32(u64(a & 0xffffff) * (b & 0xffffff) >> 32)); }>("v_mul_hi_u32_u24"));
  r.add(vop<[](u32 a, u32 b) { return (u32(i64(low24(a)) * low24(b) >> 32)); }>("v_mul_hi_i32_i24"));
  upward(r, vop_clamp<[](u32 a, u32 b, u32 c) { return (a & 0xffffff) * (b & 0xffffff) + c; },
                  [](u32 a, u32 b, u32 c) { return (saturated<u32>(i64(a & 0xffffff) * (b & 0xffffff) + c)); }>(
      "v_mad_u32_u24"));
  upward(r, vop_clamp<[](u32 a, u32 b, u32 c) { return i32(u32(low24(a)) * u32(low24(b)) + c); },
                  [](u32 a, u32 b, u32 c) { return (saturated<i32>(i64(low24(a)) * low24(b) + i32(c))); }>(
      "v_mad_i32_i24"));
  r.add(mad_wide("v_mad_u64_u32", mad_wide_body<u32>));
  r.add(mad_wide("v_mad_i64_i32", mad_wide_body<i32>));
  r.add(vop_clamp<[](u16 a, u16 b, u32 c) { return u32(a) * b + c; },
                  [](u16 a, u16 b, u32 c) { return (saturated<u32>(i64(a) * b + c)); }>("v_mad_u32_u16"));
  r.add(vop_clamp<[](i16 a, i16 b, u32 c) { return i32(u32(i32(a) * b) + c); },
                  [](i16 a, i16 b, u32 c) { return (saturated<i32>(i64(a) * b + i32(c))); }>("v_mad_i32_i16"));
}

void shifts(Registry& r) {
  const auto moves = [&r](Desc d, ShadowFn shadow) {
    d.shadow = shadow;
    r.add(d);
  };
  moves(vop<[](u32 a, u32 b) { return b << (a & 31); }>("v_lshlrev_b32"), shadow_bits_control0);
  moves(vop<[](u32 a, u32 b) { return (b >> (a & 31)); }>("v_lshrrev_b32"), shadow_bits_control0);
  moves(vop<[](u32 a, i32 b) { return (b >> (a & 31)); }>("v_ashrrev_i32"), shadow_bits_control0);
  moves(vop<[](u32 a, u64 b) { return b << (a & 63); }>("v_lshlrev_b64"), shadow_bits_control0);
  moves(vop<[](u32 a, u64 b) { return (b >> (a & 63)); }>("v_lshrrev_b64"), shadow_bits_control0);
  moves(vop<[](u32 a, i64 b) { return (b >> (a & 63)); }>("v_ashrrev_i64"), shadow_bits_control0);
}

template <class T>
void order(Registry& r, const char* const (&names)[5]) {
  r.add(vop<[](T a, T b) { return a < b ? a : b; }>(names[0]));
  r.add(vop<[](T a, T b) { return a < b ? b : a; }>(names[1]));
  r.add(vop<[](T a, T b, T c) {
    const T m = a < b ? a : b;
    return m < c ? m : c;
  }>(names[2]));
  r.add(vop<[](T a, T b, T c) {
    const T m = a < b ? b : a;
    return m < c ? c : m;
  }>(names[3]));
  r.add(vop<[](T a, T b, T c) {
    const T low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : (c > high) ? high : c;
  }>(names[4]));
}

}  // namespace

void register_valu_int(Registry& r) {
  add_and_subtract(r);
  multiply(r);
  shifts(r);
  order<u32>(r, {"v_min_u32", "v_max_u32", "v_min3_u32", "v_max3_u32", "v_med3_u32"});
  order<i32>(r, {"v_min_i32", "v_max_i32", "v_min3_i32", "v_max3_i32", "v_med3_i32"});
}

}  // namespace amdsim
