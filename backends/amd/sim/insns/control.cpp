// Branches, waits, barriers, priorities and the other SOPP instructions.
#include "../core/registry.hpp"
#include "../core/workgroup.hpp"

namespace amdsim {
namespace {

void jump(Wave& w, const Inst& in) { w.next_pc = static_cast<u32>(in.src[0].value); }

void s_branch(Wave& w, const Inst& in) { jump(w, in); }

void require_defined(const Wave& w, u64 undefined, const char* what) {
  if (undefined) w.violate(Check::Uninit, std::string("a branch depends on undefined ") + what, undefined);
}

template <bool Wanted>
void s_cbranch_scc(Wave& w, const Inst& in) {
  require_defined(w, w.scc_undef, "SCC");
  if (w.scc == Wanted) jump(w, in);
}

template <bool WhenZero>
void s_cbranch_vcc(Wave& w, const Inst& in) {
  if (!(w.vcc() & ~w.undef_pair(sreg::kVcc))) require_defined(w, w.undef_pair(sreg::kVcc), "VCC");
  if ((w.vcc() == 0) == WhenZero) jump(w, in);
}

template <bool WhenZero>
void s_cbranch_exec(Wave& w, const Inst& in) {
  if ((w.exec() == 0) == WhenZero) jump(w, in);
}

void s_endpgm(Wave& w, const Inst&) { w.state = Wave::State::Ended; }

void s_barrier(Wave& w, const Inst&) { w.state = Wave::State::AtBarrier; }

void no_effect(Wave&, const Inst&) {}

Desc sopp(const char* name, ExecFn exec, std::initializer_list<Ty> src = {}, u32 flags = 0) {
  Desc d;
  d.name = name, d.exec = exec, d.flags = flags;
  for (Ty t : src) d.src[d.n_src++] = t;
  return d;
}

}  // namespace

void register_control(Registry& r) {
  r.add(sopp("s_branch", s_branch, {Ty::Label}, kBranch));
  r.add(sopp("s_cbranch_scc0", s_cbranch_scc<false>, {Ty::Label}, kBranch));
  r.add(sopp("s_cbranch_scc1", s_cbranch_scc<true>, {Ty::Label}, kBranch));
  r.add(sopp("s_cbranch_vccz", s_cbranch_vcc<true>, {Ty::Label}, kBranch));
  r.add(sopp("s_cbranch_vccnz", s_cbranch_vcc<false>, {Ty::Label}, kBranch));
  r.add(sopp("s_cbranch_execz", s_cbranch_exec<true>, {Ty::Label}, kBranch));
  r.add(sopp("s_cbranch_execnz", s_cbranch_exec<false>, {Ty::Label}, kBranch));
  r.add(sopp("s_endpgm", s_endpgm, {}, kTerminator));
  r.add(sopp("s_barrier", s_barrier));
  r.add(sopp("s_waitcnt", no_effect, {Ty::Waitcnt}));
  r.add(sopp("s_nop", no_effect, {Ty::Imm16}));
  r.add(sopp("s_setprio", no_effect, {Ty::Imm16}));
  r.add(sopp("s_sleep", no_effect, {Ty::Imm16}));
}

}  // namespace amdsim
