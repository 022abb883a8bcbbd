// Dot products. The ISA writes f32 ones as a chain of separately rounded sums; products of 16-bit floats are exact.
#include "../arith/convert.hpp"
#include "../arith/multiversion.hpp"
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

// A half picked and negated as for packed operands, by hand: the third operand is one f32.
struct Half {
  u32 shift, flip;
};
Half half_of(const Modifiers& m, int i, bool high) {
  const bool from_high = (high ? m.op_sel_hi : m.op_sel) >> i & 1, negated = (high ? m.neg_hi : m.neg_lo) >> i & 1;
  return {from_high ? 16u : 0u, negated ? 0x8000u : 0u};
}
template <class H>
WARPWAVE_INLINE f32 value_of(u32 raw, Half half) {
  return arith::to_f32(H{u16((raw >> half.shift & 0xffffu) ^ half.flip)});
}

// v_dot2_f32_f16 starts from the addend, v_dot2_f32_bf16 adds it last (CDNA4 ISA, VOP3P).
template <class H, bool AddendFirst>
WARPWAVE_MULTIVERSION_TEMPLATE void dot2_rows(LaneArgs& io, const Modifiers& m) {
  const Half a_low = half_of(m, 0, false), a_high = half_of(m, 0, true);
  const Half b_low = half_of(m, 1, false), b_high = half_of(m, 1, true);
  const u32 keep = m.neg_hi >> 2 & 1 ? 0x7fffffffu : ~0u, flip = m.neg_lo >> 2 & 1 ? 0x80000000u : 0;
  u32* d = io.d;
  const u32 *a = io.a, *b = io.b, *c = io.c;
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l) {
    const f32 low = mul(value_of<H>(a[l], a_low), value_of<H>(b[l], b_low));
    const f32 high = mul(value_of<H>(a[l], a_high), value_of<H>(b[l], b_high));
    const f32 addend = bits<f32>((c[l] & keep) ^ flip);
    d[l] = bits<u32>(AddendFirst ? add(add(addend, low), high) : add(add(low, high), addend));
  }
}
template <class H, bool AddendFirst>
void dot2_body(LaneArgs& io) {
  dot2_rows<H, AddendFirst>(io, io.in->mod);
}
template <class H>
void dot2c_body(LaneArgs& io) {
  dot2_rows<H, true>(io, Modifiers{});
}
template <class H>
Desc dot2c(const char* name) {
  return with_body(vop_acc<[](u32, u32, f32 c) { return c; }>(name, kDot), dot2c_body<H>);
}

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
  r.add(dot2c<f16>("v_dot2c_f32_f16"));
  r.add(only(kGfx950, dot2c<bf16>("v_dot2c_f32_bf16")));
  const auto sources = {Ty::B32, Ty::B32, Ty::F32};
  r.add(vop_raw("v_dot2_f32_f16", dot2_body<f16, true>, Ty::F32, sources, kDot));
  r.add(only(kGfx950, vop_raw("v_dot2_f32_bf16", dot2_body<bf16, false>, Ty::F32, sources, kDot)));
}

}  // namespace amdsim
