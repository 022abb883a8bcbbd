// Moves, selections and transfers between lanes, scalars and the two register files.
#include <bit>

#include "../arith/multiversion.hpp"
#include "../core/shadow.hpp"
#include "vop_modes.hpp"

namespace amdsim {
namespace {

// Number of ones, in operations that vectorise.
WARPWAVE_INLINE u32 population(u32 x) {
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  return ((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}

Desc moving(Desc d, ShadowFn shadow) {
  d.shadow = shadow;
  return d;
}

WARPWAVE_MULTIVERSION void v_cndmask_b32(LaneArgs& io) {
  alignas(64) u32 flag[kLanes];
  spread_mask(io.mask_in, flag);
  u32* d = io.d;
  const u32 *a = io.a, *b = io.b;
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l) d[l] = flag[l] ? b[l] : a[l];
}

u32 undefined_bits(const Wave& w, int row, int lane) {
  u32 undefined = 0;
  for (int byte = 0; byte < 4; ++byte)
    if (w.vundef[row].b[byte] >> lane & 1) undefined |= 0xffu << 8 * byte;
  return undefined;
}

void lane_to_scalar(Wave& w, const Inst& in, int lane) {
  const Operand& source = in.src[0];
  if (source.kind != Kind::Vgpr) {
    w.sgpr[in.dst.reg] = w.s32(source);
    w.sundef[in.dst.reg] = static_cast<u32>(w.s_undef(source));
    return;
  }
  w.sgpr[in.dst.reg] = w.v[source.reg][lane];
  w.sundef[in.dst.reg] = undefined_bits(w, source.reg, lane);
}

// Lane 0 when no lane is active (ISA, V_READFIRSTLANE_B32).
void v_readfirstlane_b32(Wave& w, const Inst& in) { lane_to_scalar(w, in, w.exec() ? std::countr_zero(w.exec()) : 0); }

int selected_lane(Wave& w, const Inst& in) {
  if (w.s_undef(in.src[1])) w.violate(Check::Uninit, "the lane select is undefined");
  return static_cast<int>(w.s32(in.src[1]) & 63);
}

void v_readlane_b32(Wave& w, const Inst& in) { lane_to_scalar(w, in, selected_lane(w, in)); }

void v_writelane_b32(Wave& w, const Inst& in) {
  const int lane = selected_lane(w, in);
  const u32 undefined = static_cast<u32>(w.s_undef(in.src[0]));
  w.v[in.dst.reg][lane] = w.s32(in.src[0]);
  for (int byte = 0; byte < 4; ++byte) {
    u64& mask = w.vundef[in.dst.reg].b[byte];
    mask = (mask & ~(1ull << lane)) | u64((undefined >> 8 * byte & 0xff) != 0) << lane;
  }
}

void exchange_lane(Wave& w, int row_a, int lane_a, int row_b, int lane_b, bool write_a, bool write_b) {
  const u32 a = w.v[row_a][lane_a], b = w.v[row_b][lane_b];
  const u32 undefined_a = undefined_bits(w, row_a, lane_a), undefined_b = undefined_bits(w, row_b, lane_b);
  const auto write = [&w](int row, int lane, u32 value, u32 undefined) {
    w.v[row][lane] = value;
    for (int byte = 0; byte < 4; ++byte) {
      u64& mask = w.vundef[row].b[byte];
      mask = (mask & ~(1ull << lane)) | u64((undefined >> 8 * byte & 1) != 0) << lane;
    }
  };
  if (write_a) write(row_a, lane_a, b, undefined_b);
  if (write_b) write(row_b, lane_b, a, undefined_a);
}

void v_swap_b32(Wave& w, const Inst& in) {
  for (int l = 0; l < kLanes; ++l)
    if (w.exec() >> l & 1) exchange_lane(w, in.dst.reg, l, in.src[0].reg, l, true, true);
}

// The upper `Span` lanes of each pair of groups of vdst trade places with the lower ones of src0 (CDNA4 ISA, VOP1).
// The pseudo-code does not mention EXEC; a disabled lane is not written.
template <int Span>
void v_permlane_swap(Wave& w, const Inst& in) {
  const u64 exec = w.exec();
  for (int low = 0; low < kLanes; ++low) {
    if ((low & Span) != 0) continue;
    const int high = low + Span;
    exchange_lane(w, in.dst.reg, high, in.src[0].reg, low, exec >> high & 1, exec >> low & 1);
  }
}

// Bits of the mask below the lane, low or high half, added to the second source.
template <bool High>
WARPWAVE_MULTIVERSION_GCC void mbcnt_body(LaneArgs& io) {
  u32* d = io.d;
  const u32 *a = io.a, *b = io.b;
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l) {
    const u64 below = (u64(1) << l) - 1;
    d[l] = population(a[l] & u32(High ? below >> 32 : below)) + b[l];
  }
}

Desc lane_op(const char* name, ExecFn exec, std::initializer_list<Ty> src, u32 flags) {
  Desc d;
  d.name = name, d.exec = exec, d.dst = Ty::B32, d.flags = kValu | flags;
  for (const Ty t : src) d.src[d.n_src++] = t;
  return d;
}

void between_lanes(Registry& r) {
  r.add(lane_op("v_readfirstlane_b32", v_readfirstlane_b32, {Ty::B32}, kFirstLane));
  r.add(lane_op("v_readlane_b32", v_readlane_b32, {Ty::B32, Ty::B32}, kLaneSelect | kIgnoresExec));
  r.add(lane_op("v_writelane_b32", v_writelane_b32, {Ty::B32, Ty::B32}, kLaneSelect | kIgnoresExec | kReadsDst));
  r.add(lane_op("v_swap_b32", v_swap_b32, {Ty::B32}, kPermSwap | kReadsDst));
  r.add(only(kGfx950,
             lane_op("v_permlane16_swap_b32", v_permlane_swap<16>, {Ty::B32}, kPermSwap | kReadsDst | kCrossLane)));
  r.add(only(kGfx950,
             lane_op("v_permlane32_swap_b32", v_permlane_swap<32>, {Ty::B32}, kPermSwap | kReadsDst | kCrossLane)));
  r.add(vop_raw("v_mbcnt_lo_u32_b32", mbcnt_body<false>, Ty::B32, {Ty::B32, Ty::B32}));
  r.add(vop_raw("v_mbcnt_hi_u32_b32", mbcnt_body<true>, Ty::B32, {Ty::B32, Ty::B32}));
}

}  // namespace

void register_valu_move(Registry& r) {
  r.add(moving(vop<[](u32 a) { return a; }>("v_mov_b32"), shadow_move));
  r.add(moving(vop<[](u64 a) { return a; }>("v_mov_b64"), shadow_move));
  r.add(moving(vop<[](u32 a) { return a; }>("v_accvgpr_read_b32"), shadow_move));
  r.add(moving(vop<[](u32 a) { return a; }>("v_accvgpr_write_b32"), shadow_move));
  r.add(moving(vop<[](u32 a) { return a; }>("v_accvgpr_mov_b32"), shadow_move));
  r.add(moving(vop_raw("v_cndmask_b32", v_cndmask_b32, Ty::B32, {Ty::B32, Ty::B32, Ty::Mask}, kMaskIn), shadow_select));
  r.add(moving(vop<[](f16 a, f16 b) { return u32(a.bits) | u32(b.bits) << 16; }>("v_pack_b32_f16"), shadow_pack));
  between_lanes(r);
}

}  // namespace amdsim
