// Dot products. The ISA writes f32 ones as a chain of separately rounded sums; products of 16-bit floats are exact.
#include "../arith/convert.hpp"
#include "vop_modes.hpp"

namespace amdsim {
namespace {

using namespace arith;

template <int Width, bool Signed>
i64 integer_dot(u32 a, u32 b, i64 sum) {
  for (int s = 0; s < 32; s += Width) {
    const u32 x = a << (32 - Width - s), y = b << (32 - Width - s);
    sum += Signed ? i64(i32(x) >> (32 - Width)) * (i32(y) >> (32 - Width))
                  : i64(u64(x >> (32 - Width)) * (y >> (32 - Width)));
  }
  return sum;
}

template <int Width>
constexpr auto kSigned = [](u32 a, u32 b, u32 c) { return i32(integer_dot<Width, true>(a, b, i32(c))); };
template <int Width>
constexpr auto kSignedClamped =
    [](u32 a, u32 b, u32 c) { return saturate_to<i32, i64>(integer_dot<Width, true>(a, b, i32(c))); };
template <int Width>
constexpr auto kUnsigned = [](u32 a, u32 b, u32 c) { return u32(integer_dot<Width, false>(a, b, c)); };
template <int Width>
constexpr auto kUnsignedClamped =
    [](u32 a, u32 b, u32 c) { return saturate_to<u32, i64>(integer_dot<Width, false>(a, b, c)); };

// Halves picked and negated as for packed operands, by hand: the third operand is one f32.
u32 half_of(const Modifiers& m, int i, u32 raw, bool high) {
  const bool from_high = (high ? m.op_sel_hi : m.op_sel) >> i & 1;
  const u32 value = from_high ? raw >> 16 : raw & 0xffff;
  return (high ? m.neg_hi : m.neg_lo) >> i & 1 ? value ^ 0x8000u : value;
}
template <class H>
f32 product(const Modifiers& m, u32 a, u32 b, bool high) {
  const H x{u16(half_of(m, 0, a, high))}, y{u16(half_of(m, 1, b, high))};
  return mul(arith::to_f32(x), arith::to_f32(y));
}

// v_dot2_f32_f16 starts from the addend, v_dot2_f32_bf16 adds it last (CDNA4 ISA, VOP3P).
template <class H, bool AddendFirst>
void dot2_body(LaneArgs& io) {
  const Modifiers& m = io.in->mod;
  for (int l = 0; l < kLanes; ++l) {
    u32 c = io.c[l];
    if (m.neg_hi >> 2 & 1) c &= 0x7fffffffu;
    if (m.neg_lo >> 2 & 1) c ^= 0x80000000u;
    const f32 low = product<H>(m, io.a[l], io.b[l], false), high = product<H>(m, io.a[l], io.b[l], true);
    const f32 addend = bits<f32>(c);
    io.d[l] = bits<u32>(AddendFirst ? add(add(addend, low), high) : add(add(low, high), addend));
  }
}

template <class H>
constexpr auto kDot2c = [](u32 a, u32 b, f32 c) {
  const Modifiers plain;
  return add(add(c, product<H>(plain, a, b, false)), product<H>(plain, a, b, true));
};

}  // namespace

void register_valu_dot(Registry& r) {
  r.add(vop_clamp<kSigned<16>, kSignedClamped<16>>("v_dot2_i32_i16", kDot));
  r.add(vop_clamp<kUnsigned<16>, kUnsignedClamped<16>>("v_dot2_u32_u16", kDot));
  r.add(vop_clamp<kSigned<8>, kSignedClamped<8>>("v_dot4_i32_i8", kDot));
  r.add(vop_clamp<kUnsigned<8>, kUnsignedClamped<8>>("v_dot4_u32_u8", kDot));
  r.add(vop_clamp<kSigned<4>, kSignedClamped<4>>("v_dot8_i32_i4", kDot));
  r.add(vop_clamp<kUnsigned<4>, kUnsignedClamped<4>>("v_dot8_u32_u4", kDot));
  r.add(with_body(vop_acc<kSigned<16>>("v_dot2c_i32_i16", kDot), clamp_body<kSigned<16>, kSignedClamped<16>>));
  r.add(with_body(vop_acc<kSigned<8>>("v_dot4c_i32_i8", kDot), clamp_body<kSigned<8>, kSignedClamped<8>>));
  r.add(with_body(vop_acc<kSigned<4>>("v_dot8c_i32_i4", kDot), clamp_body<kSigned<4>, kSignedClamped<4>>));
  r.add(vop_acc<kDot2c<f16>>("v_dot2c_f32_f16", kDot));
  r.add(only(kGfx950, vop_acc<kDot2c<bf16>>("v_dot2c_f32_bf16", kDot)));
  const auto sources = {Ty::B32, Ty::B32, Ty::F32};
  r.add(vop_raw("v_dot2_f32_f16", dot2_body<f16, true>, Ty::F32, sources, kDot));
  r.add(only(kGfx950, vop_raw("v_dot2_f32_bf16", dot2_body<bf16, false>, Ty::F32, sources, kDot)));
}

}  // namespace amdsim
