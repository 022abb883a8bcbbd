// Dot products. The ISA writes f32 ones as a chain of separately rounded sums; products of 16-bit floats are exact.
#include "../arith/convert.hpp"
#include "../arith/half_rows.hpp"
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
struct Halves {
  alignas(64) f32 lane[kLanes];
};
WARPWAVE_MULTIVERSION void widen(Halves& out, const u32* raw, Half half, bool brain) {
  if (!brain) arith::widen_halves(out.lane, raw, half.shift);
  const u32 sign = half.flip << 16;
  if (brain)
    for (int l = 0; l < kLanes; ++l) out.lane[l] = bits<f32>((raw[l] >> half.shift << 16) ^ sign);
  else if (sign)
    for (int l = 0; l < kLanes; ++l) out.lane[l] = -out.lane[l];
}

struct Products {
  Halves a_low, a_high, b_low, b_high, addend;
};
template <bool AddendFirst, auto Add, auto Mul>
WARPWAVE_INLINE f32 dot_of(const Products& p, int l) {
  const f32 low = Mul(p.a_low.lane[l], p.b_low.lane[l]), high = Mul(p.a_high.lane[l], p.b_high.lane[l]);
  return AddendFirst ? Add(Add(p.addend.lane[l], low), high) : Add(Add(low, high), p.addend.lane[l]);
}
// Without regard to which NaN comes out; false when one does.
template <bool AddendFirst>
WARPWAVE_INLINE bool numbers(f32* out, const Products& p) {
  u32 nan = 0;
  for (int l = 0; l < kLanes; ++l) {
    out[l] = dot_of<AddendFirst, [](f32 x, f32 y) { return x + y; }, [](f32 x, f32 y) { return x * y; }>(p, l);
    nan |= u32(out[l] != out[l]);
  }
  return nan == 0;
}
template <bool AddendFirst>
WARPWAVE_INLINE void any_values(f32* out, const Products& p) {
  for (int l = 0; l < kLanes; ++l)
    out[l] = dot_of<AddendFirst, [](f32 x, f32 y) { return add(x, y); }, [](f32 x, f32 y) { return mul(x, y); }>(p, l);
}

// v_dot2_f32_f16 starts from the addend, v_dot2_f32_bf16 adds it last (CDNA4 ISA, VOP3P).
WARPWAVE_MULTIVERSION void sum_products(f32* out, const Products& p, bool addend_first) {
  if (addend_first ? numbers<true>(out, p) : numbers<false>(out, p)) return;
  if (addend_first)
    any_values<true>(out, p);
  else
    any_values<false>(out, p);
}

template <class H, bool AddendFirst>
void dot2_rows(LaneArgs& io, const Modifiers& m) {
  constexpr bool brain = std::is_same_v<H, bf16>;
  Products p;
  widen(p.a_low, io.a, half_of(m, 0, false), brain), widen(p.a_high, io.a, half_of(m, 0, true), brain);
  widen(p.b_low, io.b, half_of(m, 1, false), brain), widen(p.b_high, io.b, half_of(m, 1, true), brain);
  const u32 keep = m.neg_hi >> 2 & 1 ? 0x7fffffffu : ~0u, flip = m.neg_lo >> 2 & 1 ? 0x80000000u : 0;
  for (int l = 0; l < kLanes; ++l) p.addend.lane[l] = bits<f32>((io.c[l] & keep) ^ flip);
  alignas(64) f32 out[kLanes];
  sum_products(out, p, AddendFirst);
  std::memcpy(io.d, out, sizeof out);
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
