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

}  // namespace

WARPWAVE_MULTIVERSION void exec_valu(Wave& w, const Inst& in) {
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

}  // namespace amdsim
