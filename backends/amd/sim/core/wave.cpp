#include "wave.hpp"

#include "machine.hpp"
#include "workgroup.hpp"

namespace amdsim {

u64 Wave::s64(const Operand& op) const {
  if (op.kind == Kind::Const) return op.value;
  if (op.kind == Kind::Sgpr) return op.dwords >= 2 ? pair(op.reg) : sgpr[op.reg];
  switch (op.reg) {
    case sreg::kSharedBase: return kSharedAperture;
    case sreg::kSharedLimit: return kSharedAperture | 0xffff'ffffull;
    case sreg::kPrivateBase: return kPrivateAperture;
    case sreg::kPrivateLimit: return kPrivateAperture | 0xffff'ffffull;
    case sreg::kVccz: return vcc() == 0;
    case sreg::kExecz: return exec() == 0;
    case sreg::kScc: return scc;
    default: unsupported("scalar source code " + std::to_string(op.reg));
  }
}

u32 Wave::s32(const Operand& op) const { return static_cast<u32>(s64(op)); }

u64 Wave::s_undef(const Operand& op) const {
  if (op.kind == Kind::Sgpr) return op.dwords >= 2 ? undef_pair(op.reg) : sundef[op.reg];
  if (op.kind != Kind::Special) return 0;
  if (op.reg == sreg::kVccz) return undef_pair(sreg::kVcc) ? 1 : 0;
  if (op.reg == sreg::kScc) return scc_undef;
  return 0;
}

namespace {

Violation describe(const Wave& w, std::string kind, const std::string& reason, u64 lanes, const Inst* other) {
  const Inst& in = w.program->code[w.pc];
  Violation v;
  v.kind = std::move(kind);
  v.reason = reason;
  v.instruction = in.text;
  v.asm_line = in.line;
  v.source = w.program->source_of(in);
  v.kernel = w.group->launch->kernel->name;
  v.wave = w.id;
  for (int i = 0; i < 3; ++i) v.workgroup[i] = w.group->id[i];
  v.lanes = lanes;
  if (other) v.other = other->text + " (assembly line " + std::to_string(other->line) + ")";
  return v;
}

}  // namespace

void Wave::violate(Check check, const std::string& reason, u64 lanes, const Inst* other) const {
  if (!checking(check)) return;
  throw SimError(describe(*this, std::string(check_name(check)), reason, lanes, other));
}

void Wave::violate_at(Check check, const std::string& reason, u64 lanes, u64 address, const Inst* other) const {
  if (!checking(check)) return;
  Violation v = describe(*this, std::string(check_name(check)), reason, lanes, other);
  v.address = address, v.has_address = true;
  throw SimError(v);
}

void Wave::stop(const char* kind, const std::string& reason) const { throw SimError(describe(*this, kind, reason, 0, nullptr)); }

}  // namespace amdsim
