#include "fetch.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "../arith/floats.hpp"

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

u64 dpp_valid(const Inst& in, u64 exec) {
  u64 valid = 0;
  for (int l = 0; l < kLanes; ++l)
    if (const int s = in.dpp_map[l]; s >= 0 && (exec >> s & 1)) valid |= 1ull << l;
  return valid;
}

u32 select(u32 value, Sel sel, bool sext) {
  const int shift = sel <= Sel::Byte3 ? 8 * static_cast<int>(sel) : sel == Sel::Word1 ? 16 : 0;
  if (sel == Sel::Dword) return value;
  value >>= shift;
  if (sel <= Sel::Byte3) return sext ? static_cast<u32>(i32(i8(value))) : u8(value);
  return sext ? static_cast<u32>(i32(i16(value))) : u16(value);
}

bool is16(Ty t) { return t == Ty::B16 || t == Ty::F16 || t == Ty::BF16; }
bool is_packed16(Ty t) { return t == Ty::PkB16 || t == Ty::PkF16 || t == Ty::PkBF16; }

void apply_sign(u32* p, bool neg, bool abs, u32 sign) {
  const u32 keep = abs ? ~sign : ~0u, flip = neg ? sign : 0;
  for (int l = 0; l < kLanes; ++l) p[l] = (p[l] & keep) ^ flip;
}

// Integers take no sign modifiers.
void packed_halves(u32* p, const Modifiers& m, int i, bool signs) {
  const bool lo_from_high = m.op_sel >> i & 1, hi_from_high = m.op_sel_hi >> i & 1;
  const u32 negated = (m.neg_lo >> i & 1 ? 0x8000u : 0) | (m.neg_hi >> i & 1 ? 0x80000000u : 0);
  const u32 flip = signs ? negated : 0;
  for (int l = 0; l < kLanes; ++l) {
    const u32 lo = lo_from_high ? p[l] >> 16 : p[l] & 0xffff, hi = hi_from_high ? p[l] >> 16 : p[l] & 0xffff;
    p[l] = (lo | hi << 16) ^ flip;
  }
}

void packed_pair(u32 (*p)[kLanes], const Modifiers& m, int i) {
  const bool lo_from_high = m.op_sel >> i & 1, hi_from_high = m.op_sel_hi >> i & 1;
  const u32 flip_lo = m.neg_lo >> i & 1 ? 0x80000000u : 0, flip_hi = m.neg_hi >> i & 1 ? 0x80000000u : 0;
  for (int l = 0; l < kLanes; ++l) {
    const u32 lo = p[lo_from_high][l], hi = p[hi_from_high][l];
    p[0][l] = lo ^ flip_lo, p[1][l] = hi ^ flip_hi;
  }
}

// Output modifiers are ignored in IEEE mode and while output denormals are kept (ISA, "Output modifiers").
bool omod_active(const Wave& w, const Inst& in, bool single) {
  return in.mod.omod && !w.mode.ieee && !((single ? w.mode.denorm32 : w.mode.denorm64) & 2);
}

template <class T>
T modify(T x, u8 omod, bool clamp, bool dx10) {
  constexpr T least_normal = std::numeric_limits<T>::min();
  if (omod) {
    x *= omod == 1 ? T(2) : omod == 2 ? T(4) : T(0.5);
    if (x > -least_normal && x < least_normal) x = 0;  // OMOD acts only while output subnormals are flushed
  }
  if (!clamp) return x;
  if (std::isnan(x)) return dx10 ? T(0) : x;
  return x < 0 ? T(0) : x > 1 ? T(1) : x + T(0);
}

void output_modifiers(const Wave& w, const Inst& in, u32* d) {
  const bool clamp = in.mod.clamp, dx10 = w.mode.dx10_clamp;
  const Ty t = in.desc->dst;
  const u8 omod32 = omod_active(w, in, true) ? in.mod.omod : 0, omod64 = omod_active(w, in, false) ? in.mod.omod : 0;
  if (!clamp && !in.mod.omod) return;
  const int rows32 = t == Ty::F32 ? 1 : t == Ty::PkF32 ? 2 : 0;
  for (int i = 0; i < rows32 * kLanes; ++i) d[i] = bits<u32>(modify(bits<f32>(d[i]), omod32, clamp, dx10));
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

void sdwa_destination(const Inst& in, u32* d, const u32* old) {
  const Sel sel = in.mod.dst_sel;
  if (sel == Sel::Dword) return;
  const int shift = sel <= Sel::Byte3 ? 8 * static_cast<int>(sel) : sel == Sel::Word1 ? 16 : 0;
  const int width = sel <= Sel::Byte3 ? 8 : 16;
  const u32 field = ((width == 8 ? 0xffu : 0xffffu) << shift);
  for (int l = 0; l < kLanes; ++l) {
    const u32 placed = d[l] << shift & field;
    if (in.mod.dst_unused == DstUnused::Preserve) d[l] = placed | (old[l] & ~field);
    else if (in.mod.dst_unused == DstUnused::Sext) d[l] = static_cast<u32>(static_cast<i32>(placed << (32 - shift - width)) >> (32 - width - shift)) & ~((1u << shift) - 1);
    else d[l] = placed;
  }
}

}  // namespace

const i8* dpp_lane_map(u16 control) { return all_lane_maps().at(control).data(); }

u64 dpp_write_lanes(const Wave& w, const Inst& in) {
  u64 mask = w.exec();
  for (int l = 0; l < kLanes; ++l) {
    const bool enabled = (in.mod.row_mask >> (l / 16) & 1) && (in.mod.bank_mask >> (l / 4 % 4) & 1);
    if (!enabled) mask &= ~(1ull << l);
  }
  return in.mod.bound_ctrl ? mask : mask & dpp_valid(in, w.exec());
}

WARPWAVE_MULTIVERSION const u32* fetch_modified(const Wave& w, const Inst& in, int i, u32 (*buffer)[kLanes]) {
  const Operand& op = in.src[i];
  const Ty type = in.desc->src[i];
  const u32* base = op.kind == Kind::Vgpr ? w.v[op.reg] : op.kind == Kind::Const ? op.lanes : splat_scalar(w, op, op.dwords, buffer);
  if (op.dwords > 2) return base;
  const bool dpp = in.encoding == Encoding::Dpp && i == 0;
  const u64 valid = dpp ? dpp_valid(in, w.exec()) : 0;
  for (int r = 0; r < op.dwords; ++r)
    for (int l = 0; l < kLanes; ++l) {
      const u32* row = base + r * kLanes;
      if (!dpp) buffer[r][l] = row[l];
      else buffer[r][l] = valid >> l & 1 ? row[in.dpp_map[l]] : 0;
    }
  if (in.encoding == Encoding::Sdwa)
    for (int l = 0; l < kLanes; ++l) buffer[0][l] = select(buffer[0][l], op.sel, op.sext);
  if (is_packed16(type)) packed_halves(buffer[0], in.mod, i, type != Ty::PkB16);
  if (type == Ty::PkF32) packed_pair(buffer, in.mod, i);
  if (is16(type) && in.mod.op_sel >> i & 1)
    for (int l = 0; l < kLanes; ++l) buffer[0][l] >>= 16;
  if (op.neg || op.abs) apply_sign(buffer[op.dwords - 1], op.neg, op.abs, is16(type) ? 0x8000u : 0x80000000u);
  return buffer[0];
}

void post_process(const Wave& w, const Inst& in, u32* d, const u32* old) {
  output_modifiers(w, in, d);
  if (in.encoding == Encoding::Sdwa) sdwa_destination(in, d, old);
  const int dst_bit = in.desc->n_src;  // op_sel lists the sources, then the destination
  if (is16(in.desc->dst) && in.encoding != Encoding::Sdwa && in.mod.op_sel >> dst_bit & 1)
    for (int l = 0; l < kLanes; ++l) d[l] = d[l] << 16 | (old[l] & 0xffff);
}

}  // namespace amdsim
