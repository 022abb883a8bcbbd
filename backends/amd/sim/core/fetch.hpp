// Operand fetch and result write-back of vector instructions, including DPP, SDWA, op_sel, neg and abs.
#pragma once

#include "../insns/vop.hpp"

namespace amdsim {

struct alignas(64) FetchBuffer {
  u32 rows[4][2][kLanes];
};

const u32* fetch_modified(const Wave& w, const Inst& in, int i, u32 (*buffer)[kLanes]);

inline const u32* splat_scalar(const Wave& w, const Operand& op, int dwords, u32 (*buffer)[kLanes]) {
  const u64 value = dwords == 2 ? w.s64(op) : w.s32(op);
  for (int l = 0; l < kLanes; ++l) buffer[0][l] = u32(value);
  if (dwords == 2)
    for (int l = 0; l < kLanes; ++l) buffer[1][l] = u32(value >> 32);
  return buffer[0];
}

// 64 lanes of source i, ready for arithmetic.
inline const u32* fetch_lanes(const Wave& w, const Inst& in, int i, FetchBuffer& buffer) {
  const Operand& op = in.src[i];
  if (!in.plain) return fetch_modified(w, in, i, buffer.rows[i]);
  if (op.kind == Kind::Vgpr) return w.v[op.reg];
  if (op.kind == Kind::Const) return op.lanes;
  return splat_scalar(w, op, op.dwords, buffer.rows[i]);
}

// Lanes whose destination may change: EXEC, less the lanes that a DPP control disables.
u64 dpp_write_lanes(const Wave& w, const Inst& in);
inline u64 write_lanes(const Wave& w, const Inst& in) {
  if (in.flags & kIgnoresExec) return kAllLanes;
  return in.encoding == Encoding::Dpp ? dpp_write_lanes(w, in) : w.exec();
}

// Output modifiers and partial writes: turns raw results into what the destination will hold.
void post_process(const Wave& w, const Inst& in, u32* result, const u32* old);
inline bool needs_post(const Inst& in) {
  return !in.plain && (in.mod.clamp || in.mod.omod || in.mod.op_sel || in.encoding == Encoding::Sdwa);
}

// Source lane of every lane for a DPP control, -1 when it lies outside.
const i8* dpp_lane_map(u16 control);

}  // namespace amdsim
