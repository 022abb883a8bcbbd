// Branches, waits, barriers, priorities and the other program-control instructions (SOPP).
#include "../core/lds.hpp"
#include "../core/registry.hpp"
#include "../core/waits.hpp"
#include "vmem.hpp"

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

// A defined bit that is set decides the branch whatever the undefined bits are.
template <bool WhenZero>
void s_cbranch_vcc(Wave& w, const Inst& in) {
  const u64 undefined = w.undef_pair(sreg::kVcc);
  if (!(w.vcc() & ~undefined)) require_defined(w, undefined, "VCC");
  if ((w.vcc() == 0) == WhenZero) jump(w, in);
}

template <bool WhenZero>
void s_cbranch_exec(Wave& w, const Inst& in) {
  if ((w.exec() == 0) == WhenZero) jump(w, in);
}

// Outstanding operations complete by themselves once the wave has ended.
void s_endpgm(Wave& w, const Inst&) {
  w.vm.done = w.vm.issued, w.lds.done = w.lds.issued;
  if (!w.lds_dma.empty()) land_lds_dma(w);
  arrive_at_barrier(w);
  ++w.group->progress;
  w.state = Wave::State::Ended;
}

void s_barrier(Wave& w, const Inst&) {
  arrive_at_barrier(w);
  w.state = Wave::State::AtBarrier;
}

void s_waitcnt(Wave& w, const Inst& in) { wait_counters(w, in.imm); }

void s_nop(Wave& w, const Inst& in) { w.clock += static_cast<u64>(in.imm & 15); }

void s_trap(Wave& w, const Inst& in) { w.stop("trap", "the program raised trap " + std::to_string(in.imm)); }

// A hint that the wave waits for something: let the others run.
void s_sleep(Wave& w, const Inst&) { w.yielded = true; }

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
  r.add(sopp("s_waitcnt", s_waitcnt, {Ty::Waitcnt}));
  r.add(sopp("s_nop", s_nop, {Ty::Imm16}));
  r.add(sopp("s_trap", s_trap, {Ty::Imm16}));
  r.add(sopp("s_sleep", s_sleep, {Ty::Imm16}));
  for (const char* name : {"s_setprio", "s_sethalt", "s_incperflevel", "s_decperflevel"})
    r.add(sopp(name, no_effect, {Ty::Imm16}));
  for (const char* name : {"s_wakeup", "s_icache_inv", "s_ttracedata"}) r.add(sopp(name, no_effect));
  r.add(sopp("v_nop", no_effect, {}, kValu));
  r.add(sopp("ds_nop", no_effect));
}

}  // namespace amdsim
