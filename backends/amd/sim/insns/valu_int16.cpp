// 16-bit integer arithmetic. VOP2 and legacy forms clear the upper half of the destination, other VOP3-only ones keep it
// (LLVM GCNSubtarget::zeroesHigh16BitsOfDest).
#include "../arith/convert.hpp"
#include "vop_modes.hpp"

namespace amdsim {
namespace {

template <class T>
T saturated(i32 x) {
  return arith::saturate_to<T, i32>(x);
}

template <auto Plain, auto Saturating>
Desc clamp_keep(const char* name) {
  return keep_half<clamp_body<Plain, Saturating>>(vop<Plain>(name));
}

void arithmetic(Registry& r) {
  r.add(vop_clamp<[](u16 a, u16 b) { return u16(a + b); }, [](u16 a, u16 b) { return (saturated<u16>(a + b)); }>(
      "v_add_u16"));
  r.add(vop_clamp<[](u16 a, u16 b) { return u16(a - b); }, [](u16 a, u16 b) { return (saturated<u16>(a - b)); }>(
      "v_sub_u16"));
  r.add(vop_clamp<[](u16 a, u16 b) { return u16(b - a); }, [](u16 a, u16 b) { return (saturated<u16>(b - a)); }>(
      "v_subrev_u16"));
  r.add(clamp_keep<[](i16 a, i16 b) { return i16(a + b); }, [](i16 a, i16 b) { return (saturated<i16>(a + b)); }>(
      "v_add_i16"));
  r.add(clamp_keep<[](i16 a, i16 b) { return i16(a - b); }, [](i16 a, i16 b) { return (saturated<i16>(a - b)); }>(
      "v_sub_i16"));
  r.add(vop<[](u16 a, u16 b) { return u16(u32(a) * b); }>("v_mul_lo_u16"));
  constexpr auto mad = [](u16 a, u16 b, u16 c) { return u16(u32(a) * b + c); };
  constexpr auto bounded = [](u16 a, u16 b, u16 c) { return (arith::saturate_to<u16, i64>(i64(a) * b + c)); };
  r.add(clamp_keep<mad, bounded>("v_mad_u16"));
  r.add(vop_clamp<mad, bounded>("v_mad_legacy_u16"));
  constexpr auto signed_mad = [](i16 a, i16 b, i16 c) { return i16(a * b + c); };
  constexpr auto signed_bounded = [](i16 a, i16 b, i16 c) { return (saturated<i16>(a * b + c)); };
  r.add(clamp_keep<signed_mad, signed_bounded>("v_mad_i16"));
  r.add(vop_clamp<signed_mad, signed_bounded>("v_mad_legacy_i16"));
}

void shifts(Registry& r) {
  r.add(vop<[](u16 a, u16 b) { return u16(b << (a & 15)); }>("v_lshlrev_b16"));
  r.add(vop<[](u16 a, u16 b) { return (u16(b >> (a & 15))); }>("v_lshrrev_b16"));
  r.add(vop<[](u16 a, i16 b) { return (i16(b >> (a & 15))); }>("v_ashrrev_i16"));
}

template <class T>
void order(Registry& r, const char* const (&names)[5]) {
  r.add(vop<[](T a, T b) { return a < b ? a : b; }>(names[0]));
  r.add(vop<[](T a, T b) { return a < b ? b : a; }>(names[1]));
  r.add(vop_keep<[](T a, T b, T c) {
    const T m = a < b ? a : b;
    return m < c ? m : c;
  }>(names[2]));
  r.add(vop_keep<[](T a, T b, T c) {
    const T m = a < b ? b : a;
    return m < c ? c : m;
  }>(names[3]));
  r.add(vop_keep<[](T a, T b, T c) {
    const T low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : (c > high) ? high : c;
  }>(names[4]));
}

}  // namespace

void register_valu_int16(Registry& r) {
  arithmetic(r);
  shifts(r);
  order<u16>(r, {"v_min_u16", "v_max_u16", "v_min3_u16", "v_max3_u16", "v_med3_u16"});
  order<i16>(r, {"v_min_i16", "v_max_i16", "v_min3_i16", "v_max3_i16", "v_med3_i16"});
}

}  // namespace amdsim
