// Bitwise logic, bit fields, counts, byte permutation, sums of absolute differences, the random generator.
#include <bit>

#include "../arith/convert.hpp"
#include "../arith/multiversion.hpp"
#include "vop_modes.hpp"

namespace amdsim {
namespace {

Desc moving(Desc d, ShadowFn shadow) {
  d.shadow = shadow;
  return d;
}

u32 reversed(u32 x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return std::rotl(x & 0x00ff00ffu, 24) | std::rotl(x & 0xff00ff00u, 8);
}

// Byte `To` of V_PERM's result, in its place: 0..7 a byte of the data, 8..11 the sign of byte 1, 3, 5 or 7, 12 zero,
// beyond 0xff.
template <int To>
WARPWAVE_INLINE u32 selected_byte(u32 a, u32 b, u32 sel) {
  const u32 which = sel >> (8 * To) & 0xff;
  const u32 byte = arith::pick((which & 4) != 0, a, b) >> (8 * (which & 3)) & 0xff;
  const u32 sign = (0u - (arith::pick((which & 2) != 0, a, b) >> (15 + 16 * (which & 1)) & 1)) & 0xff;
  const u32 fixed = arith::pick(which == 12, 0u, 0xffu), named = arith::pick(which < 8, byte, sign);
  return arith::pick(which < 12, named, fixed) << (8 * To);
}
WARPWAVE_MULTIVERSION void permute_by_lanes(u32* d, const u32* a, const u32* b, const u32* sel) {
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l)
    d[l] = selected_byte<0>(a[l], b[l], sel[l]) | selected_byte<1>(a[l], b[l], sel[l]) |
           selected_byte<2>(a[l], b[l], sel[l]) | selected_byte<3>(a[l], b[l], sel[l]);
}

// A scalar selector that only moves bytes: the usual case.
WARPWAVE_MULTIVERSION void permute_rows(u32* d, const u32* a, const u32* b, u32 sel) {
  const u32* from[4];
  u32 shift[4], mask[4], ones = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 which = sel >> (8 * i) & 0xff;
    from[i] = which < 4 ? b : a, shift[i] = 8 * (which & 3), mask[i] = which < 8 ? 0xff : 0;
    ones |= which > 12 ? 0xffu << (8 * i) : 0;
  }
  const u32 *p = from[0], *q = from[1], *r = from[2], *s = from[3];
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l) {
    const u32 low = (p[l] >> shift[0] & mask[0]) | (q[l] >> shift[1] & mask[1]) << 8;
    const u32 high = (r[l] >> shift[2] & mask[2]) << 16 | (s[l] >> shift[3] & mask[3]) << 24;
    d[l] = low | high | ones;
  }
}

void v_perm_b32(LaneArgs& io) {
  const u32 sel = io.c[0];
  bool moves = io.in->src[2].kind != Kind::Vgpr;
  for (int i = 0; i < 4; ++i) moves &= (sel >> (8 * i) & 0xff) - 8 > 3;
  if (moves) return permute_rows(io.d, io.a, io.b, sel);
  permute_by_lanes(io.d, io.a, io.b, io.c);
}

u32 distance(u32 a, u32 b) { return a > b ? a - b : b - a; }

u32 sad_u8(u32 a, u32 b, u32 sum) {
  for (int s = 0; s < 32; s += 8) sum += distance(a >> s & 0xff, b >> s & 0xff);
  return sum;
}
// "Masked": bytes of the reference that are 0 do not count.
u32 msad_u8(u32 a, u32 b, u32 sum) {
  for (int s = 0; s < 32; s += 8) sum += (b >> s & 0xff) != 0 ? distance(a >> s & 0xff, b >> s & 0xff) : 0;
  return sum;
}

template <auto Sad>
u64 quad_sad(u64 a, u32 b, u64 c) {
  u64 out = 0;
  for (int i = 0; i < 4; ++i) out |= u64(u16(Sad(u32(a >> (8 * i)), b, u32(c >> (16 * i) & 0xffff)))) << (16 * i);
  return out;
}

u32 bit_op(u8 table, u32 a, u32 b, u32 c) {
  u32 out = 0;
  for (int i = 0; i < 8; ++i) {
    const u32 term = (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    out |= table >> i & 1 ? term : 0;
  }
  return out;
}
WARPWAVE_MULTIVERSION void v_bitop3_b32(LaneArgs& io) {
  u32 terms[8];
  for (int i = 0; i < 8; ++i) terms[i] = io.in->mod.bitop3 >> i & 1 ? ~0u : 0u;
  u32* d = io.d;
  const u32 *pa = io.a, *pb = io.b, *pc = io.c;
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l) {
    const u32 a = pa[l], b = pb[l], c = pc[l];
    const u32 none = (terms[0] & ~c) | (terms[1] & c), only_b = (terms[2] & ~c) | (terms[3] & c);
    const u32 only_a = (terms[4] & ~c) | (terms[5] & c), both = (terms[6] & ~c) | (terms[7] & c);
    d[l] = (~a & ((~b & none) | (b & only_b))) | (a & ((~b & only_a) | (b & both)));
  }
}
void v_bitop3_b16(LaneArgs& io) {
  for (int l = 0; l < kLanes; ++l) io.d[l] = u16(bit_op(io.in->mod.bitop3, io.a[l], io.b[l], io.c[l]));
}

void logic(Registry& r) {
  r.add(moving(vop<[](u32 a, u32 b) { return a & b; }>("v_and_b32"), shadow_and));
  r.add(moving(vop<[](u32 a, u32 b) { return a | b; }>("v_or_b32"), shadow_or));
  r.add(moving(vop<[](u32 a, u32 b) { return a ^ b; }>("v_xor_b32"), shadow_bytewise));
  r.add(moving(vop<[](u32 a, u32 b) { return ~(a ^ b); }>("v_xnor_b32"), shadow_bytewise));
  r.add(moving(vop<[](u32 a) { return ~a; }>("v_not_b32"), shadow_bytewise));
  r.add(moving(vop<[](u32 a, u32 b, u32 c) { return (a & b) | c; }>("v_and_or_b32"), shadow_and_or));
  r.add(moving(vop<[](u32 a, u32 b, u32 c) { return a | b | c; }>("v_or3_b32"), shadow_or));
  r.add(moving(vop<[](u32 a, u32 b, u32 c) { return (a << (b & 31)) | c; }>("v_lshl_or_b32"), shadow_lshl_or));
  r.add(moving(vop<[](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); }>("v_bfi_b32"), shadow_bfi));
  r.add(only(kGfx950, moving(vop_raw("v_bitop3_b32", v_bitop3_b32, Ty::B32, {Ty::B32, Ty::B32, Ty::B32}),
                             shadow_bytewise)));
  r.add(only(kGfx950,
             keep_half<v_bitop3_b16>(vop_raw("v_bitop3_b16", v_bitop3_b16, Ty::B16, {Ty::B16, Ty::B16, Ty::B16}))));
}

void fields(Registry& r) {
  r.add(moving(vop<[](u32 a, u32 b, u32 c) { return (a >> (b & 31) & ((1u << (c & 31)) - 1)); }>("v_bfe_u32"),
               shadow_bits_control12));
  r.add(moving(vop<[](i32 a, u32 b, u32 c) {
                 const u32 offset = b & 31, width = c & 31;
                 const u32 room = 32 - (offset + width < 32 ? offset + width : 32);
                 const i32 field = (i32(u32(a) << room) >> room);
                 return width == 0 ? 0 : (field >> offset);
               }>("v_bfe_i32"),
               shadow_bits_control12));
  r.add(vop<[](u32 a, u32 b) { return ((1u << (a & 31)) - 1) << (b & 31); }>("v_bfm_b32"));
  r.add(moving(vop<[](u32 a) { return reversed(a); }>("v_bfrev_b32"), shadow_bits_all));
  r.add(moving(vop<[](u32 a, u32 b, u32 c) { return (u32((u64(a) << 32 | b) >> (c & 31))); }>("v_alignbit_b32"),
               shadow_bits_control2));
  r.add(moving(vop<[](u32 a, u32 b, u32 c) { return (u32((u64(a) << 32 | b) >> (8 * (c & 3)))); }>("v_alignbyte_b32"),
               shadow_bits_control2));
  r.add(moving(vop_raw("v_perm_b32", v_perm_b32, Ty::B32, {Ty::B32, Ty::B32, Ty::B32}), shadow_perm));
}

void counts(Registry& r) {
  r.add(vop<[](u32 a, u32 b) { return u32(std::popcount(a)) + b; }>("v_bcnt_u32_b32"));
  r.add(vop<[](u32 a) { return a == 0 ? ~0u : u32(std::countl_zero(a)); }>("v_ffbh_u32"));
  r.add(vop<[](u32 a) { return a == 0 ? ~0u : u32(std::countr_zero(a)); }>("v_ffbl_b32"));
  r.add(vop<[](u32 a) {
    const u32 x = a ^ u32(i32(a) >> 31);
    return x == 0 ? ~0u : u32(std::countl_zero(x));
  }>("v_ffbh_i32"));
}

void bytes(Registry& r) {
  r.add(vop<[](u32 a, u32 b, u32 c) { return sad_u8(a, b, c); }>("v_sad_u8"));
  r.add(vop<[](u32 a, u32 b, u32 c) { return (sad_u8(a, b, 0) << 16) + c; }>("v_sad_hi_u8"));
  r.add(vop<[](u32 a, u32 b, u32 c) { return (c + distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16)); }>(
      "v_sad_u16"));
  r.add(vop<[](u32 a, u32 b, u32 c) { return c + distance(a, b); }>("v_sad_u32"));
  r.add(vop<[](u32 a, u32 b, u32 c) { return msad_u8(a, b, c); }>("v_msad_u8"));
  r.add(vop<[](u64 a, u32 b, u64 c) { return (quad_sad<sad_u8>(a, b, c)); }>("v_qsad_pk_u16_u8"));
  r.add(vop<[](u64 a, u32 b, u64 c) { return (quad_sad<msad_u8>(a, b, c)); }>("v_mqsad_pk_u16_u8"));
  r.add(vop<[](u32 a, u32 b, u32 c) {
    u32 out = 0;
    for (int s = 0; s < 32; s += 8) out |= (((a >> s & 0xff) + (b >> s & 0xff) + (c >> s & 1)) / 2) << s;
    return out;
  }>("v_lerp_u8"));
  r.add(vop<[](u32 a) {
    const auto low = arith::saturate_to<u8, i32>(i16(a)), high = arith::saturate_to<u8, i32>(i16(a >> 16));
    return u16(low | high << 8);
  }>("v_sat_pk_u8_i16"));
  r.add(only(kGfx950, vop<[](u32 a) { return arith::prng_step(a); }>("v_prng_b32")));
}

// V_ASHR_PK_*: two values shifted right and saturated to bytes of the selected half; the other half is kept.
template <class Byte>
void ashr_pk_body(LaneArgs& io) {
  const bool high = io.in->mod.op_sel >> 3 & 1;
  for (int l = 0; l < kLanes; ++l) {
    const int shift = int(io.c[l] & 31);
    const u32 a = u8(arith::saturate_to<Byte, i32>(i32(io.a[l]) >> shift));
    const u32 b = u8(arith::saturate_to<Byte, i32>(i32(io.b[l]) >> shift));
    io.d[l] = high ? (io.d[l] & 0xffffu) | (a | b << 8) << 16 : (io.d[l] & 0xffff0000u) | a | b << 8;
  }
}
template <class Byte>
Desc ashr_pk(const char* name) {
  Desc d = vop_raw(name, ashr_pk_body<Byte>, Ty::B32, {Ty::B32, Ty::B32, Ty::B32}, kReadsDst | kPartial);
  d.shadow = shadow_half;
  return only(kGfx950, d);
}

}  // namespace

void register_valu_bits(Registry& r) {
  logic(r);
  fields(r);
  counts(r);
  bytes(r);
  r.add(ashr_pk<i8>("v_ashr_pk_i8_i32"));
  r.add(ashr_pk<u8>("v_ashr_pk_u8_i32"));
}

}  // namespace amdsim
