#include "op.hpp"

#include <map>

#include "../core/registry.hpp"

namespace amdsim::timing {
namespace {

constexpr u32 kSlot = 4;

Unit unit_of(u32 flags) {
  if (flags & kMfma) return Unit::Matrix;
  if (flags & kDs) return Unit::Lds;
  if (flags & kSmem) return Unit::ScalarMemory;
  if (flags & kVmem) return Unit::Memory;
  if (flags & kBranch) return Unit::Branch;
  if (flags & kValu) return Unit::Valu;
  return flags & kSalu ? Unit::Salu : Unit::Internal;
}

Control control_of(const std::string& name) {
  static const std::map<std::string, Control> known = {
      {"s_waitcnt", Control::Wait},   {"s_barrier", Control::Barrier},    {"s_nop", Control::Idle},
      {"s_sleep", Control::Sleep},    {"s_setprio", Control::Priority},   {"s_endpgm", Control::End}};
  const auto found = known.find(name);
  return found == known.end() ? Control::None : found->second;
}

// Runs on the datapath that matrix instructions use.
bool beside_no_matrix(const Facts& f) {
  if (f.flags & kDot) return true;
  return f.name == "v_pk_add_f32" || f.name == "v_pk_mul_f32" || f.name == "v_pk_fma_f32" || f.name == "v_pk_mov_b32";
}

// LLVM pull request 233721, from thread traces of MI308X and MI350X: an XDL instruction keeps other vector
// instructions off for one slot and one more per 16 bytes of its wider operand, packed f32 and dot products until two
// slots after its passes (three when an operand has 16 bytes); f32 and f64 forms keep all off until then.
void describe_matrix(Op& op, const Facts& f, const Rates& r) {
  op.busy = kSlot * f.passes;
  op.result = f.flags & kXdl ? r.matrix_result[f.passes] : kSlot * (f.passes + r.other_matrix_result + 1);
  const u32 drained = kSlot * (f.passes + 2);
  op.valu_hold = f.flags & kXdl ? kSlot * (1 + f.operand_bytes / 16) : drained;
  op.packed_hold = f.flags & kXdl && f.operand_bytes >= 16 ? drained + kSlot : drained;
  op.accumulator = f.accumulator;
}

}  // namespace

Op make_op(const Facts& f, const Rates& r) {
  Op op;
  op.unit = unit_of(f.flags), op.flags = f.flags, op.reads = f.reads, op.writes = f.writes;
  if (op.unit == Unit::Internal) op.control = control_of(f.name);
  op.imm = static_cast<u32>(f.imm);
  if (op.control == Control::Wait) op.vm_left = (op.imm & 15) | (op.imm >> 14 & 3) << 4, op.lgkm_left = op.imm >> 8 & 15;
  if (op.unit == Unit::Matrix) describe_matrix(op, f, r);
  if (op.unit == Unit::Valu) op.packed = beside_no_matrix(f);
  if (f.flags & kTrans) op.busy = op.result = r.trans;
  op.to_lds = f.flags & kLdsDma, op.store = f.flags & kStore;
  op.returns = !op.writes.empty();
  return op;
}

}  // namespace amdsim::timing
