#include "vector_mode.hpp"

#include "../insns/vop.hpp"
#include "decode.hpp"
#include "program.hpp"
#include "workgroup.hpp"

namespace amdsim {
namespace {

const Inst& nothing() {
  static const Desc desc = [] {
    Desc d;
    d.name = "skipped";
    return d;
  }();
  static const Inst inst = [] {
    Inst i;
    i.desc = &desc, i.exec = [](Wave&, const Inst&) {};
    return i;
  }();
  return inst;
}

void move_operand(const Wave& w, Operand& op, u32 by) {
  if (op.kind != Kind::Vgpr) return;
  const u32 last = op.reg % kAgprRow + op.dwords - 1u + by;
  if (last >= kAgprRow) w.stop("resources", "VGPR index " + std::to_string(by) + " leads to v" + std::to_string(last));
  op.reg = static_cast<u16>(op.reg + by);
}

// M0[7:0] is added to the vector registers of the operands that M0[15:12] names: SRC0, SRC1, SRC2, DST.
Inst moved(const Wave& w, const Inst& in, u32 m0) {
  Inst out = in;
  for (int i = 0; i < 3; ++i)
    if (m0 >> (12 + i) & 1) move_operand(w, out.src[i], m0 & 0xff);
  if (m0 >> 15 & 1) move_operand(w, out.dst, m0 & 0xff);
  out.n_vread = out.n_vwrite = out.n_sread = out.n_swrite = 0;
  derive_checks(out, *w.program->target);
  return out;
}

const Inst& indexed(Wave& w, const Inst& in) {
  if (w.sundef[sreg::kM0]) w.violate(Check::Uninit, "the VGPR index in M0 is undefined");
  const bool lane_wise = in.exec == exec_valu || in.exec == exec_plain;
  if (!lane_wise || in.encoding == Encoding::Dpp || in.encoding == Encoding::Sdwa || in.flags & kReadsDst)
    w.unsupported("this instruction while s_set_gpr_idx_on is in force");
  const u32 m0 = w.sgpr[sreg::kM0] & 0xf0ff;
  auto& slot = w.group->moved[u64(in.index) << 16 | m0];
  if (!slot) slot = std::make_unique<Inst>(moved(w, in, m0));
  return *slot;
}

}  // namespace

const Inst& under_vector_mode(Wave& w, const Inst& in) {
  if (w.vector_mode & kSkipsVector && in.flags & (kValu | kVmem | kDs)) return nothing();
  return w.vector_mode & kIndexedVgprs && in.flags & kValu ? indexed(w, in) : in;
}

}  // namespace amdsim
