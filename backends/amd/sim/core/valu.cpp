// Executes a VALU lane function: operand fetch with modifiers, EXEC, write-back and undefined values.
#include <cmath>

#include "../insns/vop.hpp"
#include "fetch.hpp"
#include "float_mode.hpp"
#include "program.hpp"
#include "shadow.hpp"

namespace amdsim {
namespace {

// dst = exec ? src : dst, row by row.
WARPWAVE_INLINE void merge_rows(u32* dst, const u32* src, u64 exec, int rows) {
  alignas(64) u32 keep[kLanes];
  for (int l = 0; l < 32; ++l) {
    keep[l] = 0u - (u32(exec) >> l & 1);
    keep[l + 32] = 0u - (u32(exec >> 32) >> l & 1);
  }
  for (int r = 0; r < rows; ++r, dst += kLanes, src += kLanes) {
    for (int l = 0; l < kLanes; ++l) dst[l] = (src[l] & keep[l]) | (dst[l] & ~keep[l]);
  }
}

bool has_mask_result(const Inst& in) { return in.flags & (kVcmp | kCarryOut); }

void write_mask(Wave& w, const Inst& in, u64 mask) {
  const int reg = in.sdst.kind == Kind::Sgpr ? in.sdst.reg : sreg::kVcc;
  w.set_pair(reg, mask);
  if (!(in.flags & kVcmpx)) return;
  if (w.undef_pair(reg)) w.violate(Check::Uninit, "EXEC is set from an undefined comparison", w.undef_pair(reg));
  w.set_exec(mask);
}

u64 mask_source(const Wave& w, const Inst& in) {
  if (!(in.flags & kMaskIn)) return 0;
  const Operand& op = in.src[in.n_src - 1];
  return op.kind == Kind::None || in.desc->src[in.n_src - 1] != Ty::Mask ? w.vcc() : w.s64(op);
}

bool reads_undefined(const Wave& w, const Inst& in) {
  u64 any = 0;
  for (int i = 0; i < in.n_read_rows; ++i) any |= w.vundef[in.read_rows[i]].any();
  for (int i = 0; i < in.n_sread; ++i)
    for (int r = 0; r < in.sread[i].count; ++r) any |= w.sundef[in.sread[i].first + r];
  return any != 0;
}

void define_results(Wave& w, const Inst& in) {
  for (int i = 0; i < in.n_vwrite; ++i)
    for (int r = 0; r < in.vwrite[i].count; ++r) w.vundef[in.vwrite[i].first + r] = {};
  for (int i = 0; i < in.n_swrite; ++i)
    for (int r = 0; r < in.swrite[i].count; ++r) w.sundef[in.swrite[i].first + r] = 0;
}

const u32* plain_lanes(const Wave& w, const Operand& op, u32 (*buffer)[kLanes]) {
  if (op.kind == Kind::Vgpr) return w.v[op.reg];
  return op.kind == Kind::Const ? op.lanes : splat_scalar(w, op, op.dwords, buffer);
}

WARPWAVE_MULTIVERSION_GCC void with_modifiers(Wave& w, const Inst& in) {
  FetchBuffer buffer;
  LaneArgs io;
  io.in = &in, io.mode = &w.mode, io.target = w.program->target, io.exec = w.exec();
  const int vector_sources = in.n_src - (in.flags & kMaskIn && in.n_src && in.desc->src[in.n_src - 1] == Ty::Mask ? 1 : 0);
  if (vector_sources > 0) io.a = fetch_lanes(w, in, 0, buffer);
  if (vector_sources > 1) io.b = fetch_lanes(w, in, 1, buffer);
  if (vector_sources > 2) io.c = fetch_lanes(w, in, 2, buffer);
  io.mask_in = mask_source(w, in);

  const u64 exec = write_lanes(w, in);
  const bool vector_dst = in.dst.kind == Kind::Vgpr;
  u32* dst = vector_dst ? w.v[in.dst.reg] : nullptr;
  if (in.flags & kReadsDst && vector_sources < 3) (vector_sources == 1 ? io.b : io.c) = dst;
  alignas(64) u32 result[8][kLanes];
  const bool direct = exec == kAllLanes && !needs_post(in);
  io.d = direct ? dst : result[0];
  if (!direct && in.flags & kReadsDst && vector_dst) std::memcpy(io.d, dst, sizeof(Row) * in.dst.dwords);

  propagate_undefined(w, in, exec);
  const LaneFn body = reinterpret_cast<LaneFn>(const_cast<void*>(in.body));
  if (mode_is_plain(w.mode)) {
    body(io);
  } else {
    const FloatMode mode(w.mode, in, io, buffer);
    body(io);
    if (vector_dst) mode.finish(io.d);
  }

  if (vector_dst && !direct) {
    if (needs_post(in)) post_process(w, in, io.d, dst);
    if (exec == kAllLanes)
      std::memcpy(dst, io.d, sizeof(Row) * in.dst.dwords);
    else
      merge_rows(dst, io.d, exec, in.dst.dwords);
  }
  if (has_mask_result(in)) write_mask(w, in, io.mask_out & exec);
}

}  // namespace

// Clang wants a multiversioned function to be one from its first use on, which vop.hpp is.
void exec_valu(Wave& w, const Inst& in) { with_modifiers(w, in); }

void exec_plain(Wave& w, const Inst& in) {
  if (w.exec() != kAllLanes || !mode_is_plain(w.mode) || reads_undefined(w, in)) return with_modifiers(w, in);
  alignas(64) u32 splats[3][2][kLanes];
  LaneArgs io;
  io.in = &in, io.mode = &w.mode, io.target = w.program->target, io.exec = kAllLanes;
  io.d = in.dst.kind == Kind::Vgpr ? w.v[in.dst.reg] : nullptr;
  if (in.lane_sources > 0) io.a = plain_lanes(w, in.src[0], splats[0]);
  if (in.lane_sources > 1) io.b = plain_lanes(w, in.src[1], splats[1]);
  if (in.lane_sources > 2) io.c = plain_lanes(w, in.src[2], splats[2]);
  if (in.old_dst >= 0) (in.old_dst == 1 ? io.b : io.c) = io.d;
  io.mask_in = mask_source(w, in);
  define_results(w, in);
  reinterpret_cast<LaneFn>(const_cast<void*>(in.body))(io);
  if (has_mask_result(in)) write_mask(w, in, io.mask_out);
}

}  // namespace amdsim
