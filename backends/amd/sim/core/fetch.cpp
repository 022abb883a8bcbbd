#include "fetch.hpp"

#include <array>
#include <bit>
#include <limits>

#include "../arith/floats.hpp"
#include "lane_moves.hpp"

namespace amdsim {
namespace {

using LaneMap = std::array<i8, kLanes>;

// DPP controls, CDNA3 ISA 12.? table "DPP_CTRL" (amd.md section 5).
int dpp_source(int control, int lane) {
  const int row = lane & ~15, in_row = lane & 15;
  auto within = [&](int i) { return i < 0 || i > 15 ? -1 : row + i; };
  if (control <= 0xff) return (lane & ~3) | (control >> (2 * (lane & 3)) & 3);
  const int n = control & 15;
  switch (control & 0x1f0) {
    case 0x100: return within(in_row + n);
    case 0x110: return within(in_row - n);
    case 0x120: return row + ((in_row - n) & 15);
    case 0x150: return row + n;
    default: break;
  }
  switch (control) {
    case 0x130: return lane == 63 ? -1 : lane + 1;
    case 0x134: return (lane + 1) & 63;
    case 0x138: return lane - 1;
    case 0x13c: return (lane - 1) & 63;
    case 0x140: return row + 15 - in_row;
    case 0x141: return (lane & ~7) + 7 - (lane & 7);
    case 0x142: return lane < 16 ? -1 : row - 1;
    case 0x143: return lane < 32 ? -1 : 31;
    default: return -1;
  }
}

const std::array<LaneMap, 0x160>& all_lane_maps() {
  static const auto maps = [] {
    std::array<LaneMap, 0x160> out;
    for (int c = 0; c < 0x160; ++c)
      for (int l = 0; l < kLanes; ++l) out[static_cast<std::size_t>(c)][static_cast<std::size_t>(l)] = static_cast<i8>(dpp_source(c, l));
    return out;
  }();
  return maps;
}

// Lanes that a DPP control gives a source, were all of them active.
u64 lanes_with_source(const i8* map) {
  u64 lanes = 0;
  for (int l = 0; l < kLanes; ++l) lanes |= u64(map[l] >= 0) << l;
  return lanes;
}
const std::array<u64, 0x160>& all_lanes_with_source() {
  static const auto masks = [] {
    std::array<u64, 0x160> out;
    for (std::size_t c = 0; c < out.size(); ++c) out[c] = lanes_with_source(all_lane_maps()[c].data());
    return out;
  }();
  return masks;
}

u64 dpp_valid(const Inst& in, u64 exec) {
  static const auto& with_source = all_lanes_with_source();
  const u64 mapped = with_source[in.mod.dpp_ctrl];
  if (exec == kAllLanes) return mapped;
  u64 valid = 0;
  for (u64 m = mapped; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    valid |= (exec >> in.dpp_map[l] & 1) << l;
  }
  return valid;
}

// DPP controls from 0x130 on to 0x13c, and the two broadcasts, cross the rows of 16 lanes.
bool stays_in_rows(u16 control) { return control < 0x130 || control == 0x140 || control == 0x141 || control >= 0x150; }

WARPWAVE_INLINE void clear_lanes(u32* row, u64 kept) {
  if (kept == kAllLanes) return;
  alignas(64) u32 flag[kLanes];
  spread_mask(kept, flag);
  for (int l = 0; l < kLanes; ++l) row[l] &= 0u - flag[l];
}

struct Field {
  int shift, width;
};
Field field_of(Sel sel) {
  if (sel <= Sel::Byte3) return {8 * static_cast<int>(sel), 8};
  return {sel == Sel::Word1 ? 16 : 0, sel == Sel::Dword ? 32 : 16};
}

WARPWAVE_INLINE void select_field(u32* to, const u32* from, Sel sel, bool sext) {
  const auto [shift, width] = field_of(sel);
  const int left = 32 - shift - width, right = 32 - width;
  if (sext)
    for (int l = 0; l < kLanes; ++l) to[l] = static_cast<u32>(static_cast<i32>(from[l] << left) >> right);
  else
    for (int l = 0; l < kLanes; ++l) to[l] = from[l] << left >> right;
}

bool is16(Ty t) { return t == Ty::B16 || t == Ty::F16 || t == Ty::BF16; }
bool is_packed16(Ty t) { return t == Ty::PkB16 || t == Ty::PkF16 || t == Ty::PkBF16; }

WARPWAVE_INLINE void apply_sign(u32* p, bool neg, bool abs, u32 sign) {
  const u32 keep = abs ? ~sign : ~0u, flip = neg ? sign : 0;
  for (int l = 0; l < kLanes; ++l) p[l] = (p[l] & keep) ^ flip;
}

// Integers take no sign modifiers.
WARPWAVE_INLINE void packed_halves(u32* to, const u32* p, const Modifiers& m, int i, bool signs) {
  const bool lo_from_high = m.op_sel >> i & 1, hi_from_high = m.op_sel_hi >> i & 1;
  const u32 negated = (m.neg_lo >> i & 1 ? 0x8000u : 0) | (m.neg_hi >> i & 1 ? 0x80000000u : 0);
  const u32 flip = signs ? negated : 0;
  const int lo_shift = lo_from_high ? 16 : 0, hi_shift = hi_from_high ? 16 : 0;
  for (int l = 0; l < kLanes; ++l) to[l] = ((p[l] >> lo_shift & 0xffff) | p[l] >> hi_shift << 16) ^ flip;
}

WARPWAVE_INLINE void packed_pair(u32 (*p)[kLanes], const Modifiers& m, int i) {
  const bool lo_from_high = m.op_sel >> i & 1, hi_from_high = m.op_sel_hi >> i & 1;
  const u32 flip_lo = m.neg_lo >> i & 1 ? 0x80000000u : 0, flip_hi = m.neg_hi >> i & 1 ? 0x80000000u : 0;
  for (int l = 0; l < kLanes; ++l) {
    const u32 low = p[0][l], high = p[1][l];
    p[0][l] = (lo_from_high ? high : low) ^ flip_lo, p[1][l] = (hi_from_high ? high : low) ^ flip_hi;
  }
}

// Output modifiers are ignored in IEEE mode and while output denormals are kept (ISA, "Output modifiers").
bool omod_active(const Wave& w, const Inst& in, bool single) {
  return in.mod.omod && !w.mode.ieee && !((single ? w.mode.denorm32 : w.mode.denorm64) & 2);
}

template <class T>
WARPWAVE_INLINE T scaled_by(T x, u8 omod) {
  constexpr T least_normal = std::numeric_limits<T>::min();
  const T value = x * (omod == 1 ? T(2) : omod == 2 ? T(4) : T(0.5));
  // OMOD acts only while output subnormals are flushed.
  return arith::pick((value > -least_normal) & (value < least_normal), T(0), value);
}
template <class T>
WARPWAVE_INLINE T clamped(T x, bool dx10) {
  const T bounded = arith::pick(x > 1, T(1), arith::pick(x < 0, T(0), x + T(0)));
  return arith::pick(x == x, bounded, dx10 ? T(0) : x);
}
template <class T>
WARPWAVE_INLINE T modify(T x, u8 omod, bool clamp, bool dx10) {
  const T value = omod ? scaled_by(x, omod) : x;
  return clamp ? clamped(value, dx10) : value;
}

WARPWAVE_INLINE void output_modifiers(const Wave& w, const Inst& in, u32* d) {
  const bool clamp = in.mod.clamp, dx10 = w.mode.dx10_clamp;
  const Ty t = in.desc->dst;
  const u8 omod32 = omod_active(w, in, true) ? in.mod.omod : 0, omod64 = omod_active(w, in, false) ? in.mod.omod : 0;
  if (!clamp && !in.mod.omod) return;
  const int rows32 = t == Ty::F32 ? 1 : t == Ty::PkF32 ? 2 : 0;
  if (omod32)
    for (int i = 0; i < rows32 * kLanes; ++i) d[i] = bits<u32>(scaled_by(bits<f32>(d[i]), omod32));
  if (clamp)
    for (int i = 0; i < rows32 * kLanes; ++i) d[i] = bits<u32>(clamped(bits<f32>(d[i]), dx10));
  if (t == Ty::F64)
    for (int l = 0; l < kLanes; ++l)
      LaneType<f64>::store(d, l, modify(LaneType<f64>::load(d, l), omod64, clamp, dx10));
  const int halves = t == Ty::F16 ? 1 : t == Ty::PkF16 ? 2 : 0;
  for (int h = 0; h < halves; ++h)
    for (int l = 0; l < kLanes; ++l) {
      f16 x = arith::to_f16(modify(arith::to_f32(f16{u16(d[l] >> 16 * h)}), omod64, clamp, dx10));
      if (omod64 && (x.bits & 0x7c00u) == 0) x.bits = 0;
      d[l] = (d[l] & ~(0xffffu << 16 * h)) | u32(x.bits) << 16 * h;
    }
}

WARPWAVE_INLINE void sdwa_destination(const Inst& in, u32* d, const u32* old) {
  const auto [shift, width] = field_of(in.mod.dst_sel);
  if (width == 32) return;
  const int left = 32 - width, right = 32 - width - shift;
  const u32 field = ((1u << width) - 1) << shift, below = (1u << shift) - 1;
  if (in.mod.dst_unused == DstUnused::Preserve)
    for (int l = 0; l < kLanes; ++l) d[l] = (d[l] << shift & field) | (old[l] & ~field);
  else if (in.mod.dst_unused == DstUnused::Sext)
    for (int l = 0; l < kLanes; ++l) d[l] = static_cast<u32>(static_cast<i32>(d[l] << left) >> right) & ~below;
  else
    for (int l = 0; l < kLanes; ++l) d[l] = d[l] << shift & field;
}

// Are halves or dwords of source i picked?
bool rearranges(const Inst& in, int i) {
  const Ty type = in.desc->src[i];
  return is_packed16(type) || type == Ty::PkF32 || (is16(type) && in.mod.op_sel >> i & 1);
}
// Does a modifier act on source i?
bool changes_source(const Inst& in, int i) {
  const Operand& op = in.src[i];
  if (in.encoding == Encoding::Dpp && i == 0) return true;
  if (in.encoding == Encoding::Sdwa && op.sel != Sel::Dword) return true;
  return op.neg || op.abs || rearranges(in, i);
}

}  // namespace

const i8* dpp_lane_map(u16 control) { return all_lane_maps().at(control).data(); }

u64 dpp_write_lanes(const Wave& w, const Inst& in) {
  u64 mask = w.exec();
  if ((in.mod.row_mask & in.mod.bank_mask) != 15)
    for (int l = 0; l < kLanes; ++l) {
      const bool enabled = (in.mod.row_mask >> (l / 16) & 1) && (in.mod.bank_mask >> (l / 4 % 4) & 1);
      if (!enabled) mask &= ~(1ull << l);
    }
  return in.mod.bound_ctrl ? mask : mask & dpp_valid(in, w.exec());
}

namespace {

// The lanes, bytes, halves or dwords of source i that the instruction picks, in `buffer`.
WARPWAVE_INLINE void pick_parts(const Wave& w, const Inst& in, int i, const u32* base, u32 (*buffer)[kLanes]) {
  const Operand& op = in.src[i];
  const Ty type = in.desc->src[i];
  if (in.encoding == Encoding::Sdwa) return select_field(buffer[0], base, op.sel, op.sext);
  const u32* from = base;
  if (in.encoding == Encoding::Dpp && i == 0) {
    // Lanes without a source read 0 where they are written at all (dpp_write_lanes).
    const u64 kept = in.mod.bound_ctrl ? dpp_valid(in, w.exec()) : kAllLanes;
    for (int r = 0; r < op.dwords; ++r) {
      move_lanes(buffer[r], base + r * kLanes, in.dpp_map, stays_in_rows(in.mod.dpp_ctrl));
      clear_lanes(buffer[r], kept);
    }
    from = buffer[0];
  }
  if (is_packed16(type)) return packed_halves(buffer[0], from, in.mod, i, type != Ty::PkB16);
  if (from != buffer[0]) std::memcpy(buffer, from, sizeof(Row) * op.dwords);
  if (type == Ty::PkF32) packed_pair(buffer, in.mod, i);
  if (is16(type) && in.mod.op_sel >> i & 1)
    for (int l = 0; l < kLanes; ++l) buffer[0][l] >>= 16;
}

WARPWAVE_MULTIVERSION const u32* modified(const Wave& w, const Inst& in, int i, u32 (*buffer)[kLanes]) {
  const Operand& op = in.src[i];
  const u32* base = op.kind == Kind::Vgpr    ? w.v[op.reg]
                    : op.kind == Kind::Const ? op.lanes
                                             : splat_scalar(w, op, op.dwords, buffer);
  if (op.dwords > 2 || !changes_source(in, i)) return base;
  const u32 sign = is16(in.desc->src[i]) ? 0x8000u : 0x80000000u;
  const bool only_sign = in.encoding != Encoding::Dpp && in.encoding != Encoding::Sdwa && !rearranges(in, i);
  if (only_sign && op.dwords == 1) {
    const u32 keep = op.abs ? ~sign : ~0u, flip = op.neg ? sign : 0;
    for (int l = 0; l < kLanes; ++l) buffer[0][l] = (base[l] & keep) ^ flip;
    return buffer[0];
  }
  pick_parts(w, in, i, base, buffer);
  if (op.neg || op.abs) apply_sign(buffer[op.dwords - 1], op.neg, op.abs, sign);
  return buffer[0];
}

}  // namespace

// Clang wants a multiversioned function to be one from its first use on, which fetch_lanes is.
const u32* fetch_modified(const Wave& w, const Inst& in, int i, u32 (*buffer)[kLanes]) { return modified(w, in, i, buffer); }

WARPWAVE_MULTIVERSION void post_process(const Wave& w, const Inst& in, u32* d, const u32* old) {
  output_modifiers(w, in, d);
  if (in.encoding == Encoding::Sdwa) sdwa_destination(in, d, old);
  const int dst_bit = in.desc->n_src;  // op_sel lists the sources, then the destination
  if (is16(in.desc->dst) && in.encoding != Encoding::Sdwa && in.mod.op_sel >> dst_bit & 1)
    for (int l = 0; l < kLanes; ++l) d[l] = d[l] << 16 | (old[l] & 0xffff);
}

}  // namespace amdsim
