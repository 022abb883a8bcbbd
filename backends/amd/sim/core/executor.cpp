#include "executor.hpp"

#include "machine.hpp"
#include "trace.hpp"

namespace amdsim {
namespace {

// Executes until the wave waits, ends, or has used its turn.
template <bool kTraced> void run_wave(Workgroup& group, Wave& w, u64 turn) {
  const Inst* code = w.program->code.data();
  const u32 size = static_cast<u32>(w.program->code.size());
  InstCounts* counts = group.counts->insts.data();
  for (u64 n = 0; n < turn && w.state == Wave::State::Running; ++n) {
    w.pc = w.next_pc;
    if (w.pc >= size) w.pc = size - 1, w.unsupported("execution ran past the last instruction");
    const Inst& in = code[w.pc];
    w.next_pc = w.pc + 1;
    ++counts[w.pc].executed;
    [[maybe_unused]] const u64 exec = w.exec();
    in.exec(w, in);
    if constexpr (kTraced) record(*group.trace, w, in, exec);
    ++w.executed;
  }
}

bool release_barrier(Workgroup& group) {
  bool any = false;
  for (Wave& w : group.waves) {
    if (w.state == Wave::State::Running) return false;
    any |= w.state == Wave::State::AtBarrier;
  }
  if (!any) return false;
  ++group.barrier_round;
  ++group.counts->barriers;
  for (Wave& w : group.waves)
    if (w.state == Wave::State::AtBarrier) w.state = Wave::State::Running, ++w.barriers_passed;
  return true;
}

}  // namespace

void run_workgroup(Workgroup& group) {
  constexpr u64 kTurn = 4096;
  for (;;) {
    bool running = false;
    for (Wave& w : group.waves) {
      if (w.state != Wave::State::Running) continue;
      running = true;
      const bool traced = group.trace && group.trace->wave == w.id;
      traced ? run_wave<true>(group, w, kTurn) : run_wave<false>(group, w, kTurn);
    }
    if (!running && !release_barrier(group)) return;
  }
}

}  // namespace amdsim
