#include "executor.hpp"

#include <algorithm>

#include "hazards.hpp"
#include "lds.hpp"
#include "machine.hpp"
#include "trace.hpp"
#include "vector_mode.hpp"
#include "waits.hpp"

namespace amdsim {
namespace {

constexpr u64 kGuardBits = 0x0000'8000'8000'8000ull;  // above each 16-bit field of Wave::limits

[[gnu::noinline]] void report_resources(const Wave& w, const Inst& in) {
  auto field = [](u64 packed, int i) { return std::to_string(packed >> (16 * i) & 0x7fff); };
  w.violate(Check::Resources, "uses registers beyond the kernel descriptor's allocation: needs " + field(in.need, 0) + " VGPRs, " +
            field(in.need, 1) + " AGPRs, " + field(in.need, 2) + " SGPRs; has " + field(w.limits, 0) + ", " + field(w.limits, 1) +
            ", " + field(w.limits, 2));
}

inline void check_resources(const Wave& w, const Inst& in) {
  if ((((w.limits | kGuardBits) - in.need) & kGuardBits) != kGuardBits) [[unlikely]] report_resources(w, in);
}

[[noreturn]] void past_the_end(Wave& w) {
  w.pc = static_cast<u32>(w.program->code.size()) - 1;
  w.unsupported("execution ran past the last instruction");
}

Violation place(const Wave& w, const char* kind, std::string reason) {
  Violation v;
  const Inst& in = w.program->code[w.pc];
  v.kind = kind, v.reason = std::move(reason), v.instruction = in.text, v.asm_line = in.line, v.wave = w.id;
  v.source = w.program->source_of(in), v.kernel = w.group->launch->kernel->name;
  std::copy(std::begin(w.group->id), std::end(w.group->id), v.workgroup);
  return v;
}

void check_limit(const Wave& w) {
  constexpr u64 kDefault = 1ull << 30;  // a runaway loop ends with an error
  const u64 asked = w.group->launch->config->max_instructions, limit = asked ? asked : kDefault;
  if (w.executed >= limit) throw SimError(place(w, "limit", "a wave executed " + std::to_string(limit) + " instructions without ending"));
}

enum class Follow : u8 { Nothing, Values, Steps };

void record_step(Recording& recording, const Wave& w, const InstCounts& before, const InstCounts& after) {
  const auto grown = [](u64 from, u64 to) { return static_cast<u32>(to - from); };
  recording.waves[static_cast<std::size_t>(w.id)].push_back({w.pc, grown(before.lds_cycles, after.lds_cycles),
                                                             grown(before.lines, after.lines), grown(before.bytes, after.bytes)});
}

// Executes until the wave waits, ends, or has used its turn; returns the number of instructions.
template <Follow How>
u64 run_wave(Workgroup& group, Wave& w, u64 turn) {
  const Inst* code = w.program->code.data();
  const u32 size = static_cast<u32>(w.program->code.size());
  InstCounts* counts = group.counts->insts.data();
  u64 n = 0;
  w.yielded = false;
  while (n < turn && w.state == Wave::State::Running && !w.yielded) {
    w.pc = w.next_pc;
    if (w.pc >= size) [[unlikely]] past_the_end(w);
    const Inst& in = w.vector_mode ? under_vector_mode(w, code[w.pc]) : code[w.pc];
    w.next_pc = w.pc + 1;
    ++counts[w.pc].executed;
    check_resources(w, in);
    check_waits(w, in);
    check_hazards(w, in);
    [[maybe_unused]] const u64 exec = w.exec();
    [[maybe_unused]] InstCounts before;
    if constexpr (How == Follow::Steps) before = counts[w.pc];
    in.exec(w, in);
    record_issue(w, in);
    if constexpr (How == Follow::Values) record(*group.trace, w, in, exec);
    if constexpr (How == Follow::Steps) record_step(*group.recording, w, before, counts[w.pc]);
    ++n;
  }
  w.executed += n;
  check_limit(w);
  return n;
}

// All waves that have not ended are at the barrier: the round is complete.
void release_barrier(Workgroup& group) {
  ++group.barrier_round;
  ++group.progress;
  ++group.counts->barriers;
  retire_at_barrier(group);
  for (Wave& w : group.waves)
    if (w.state == Wave::State::AtBarrier) w.state = Wave::State::Running, ++w.barriers_passed;
}

void check_unequal(const Workgroup& group) {
  const Wave *early = nullptr, *waiting = nullptr;
  for (const Wave& w : group.waves) {
    if (w.state == Wave::State::Ended) early = &w;
    if (w.state == Wave::State::AtBarrier) waiting = &w;
  }
  if (early && waiting && early->barriers_passed != 0)
    waiting->violate(Check::Barriers, "waits at a barrier that wave " + std::to_string(early->id) +
                     ", which passed " + std::to_string(early->barriers_passed) + " barriers, ended without reaching");
}

u64 run_followed(Workgroup& group, Wave& w, u64 turn) {
  if (group.recording) return run_wave<Follow::Steps>(group, w, turn);
  if (group.trace && group.trace->wave == w.id) return run_wave<Follow::Values>(group, w, turn);
  return run_wave<Follow::Nothing>(group, w, turn);
}

u64 turn_length(Workgroup& group) {
  constexpr u64 kTurn = 4096;
  return group.explore ? 1 + group.rng() % 48 : kTurn;
}

}  // namespace

void report_stuck(const Workgroup& group) {
  const Wave* spinning = &group.waves.front();
  for (const Wave& w : group.waves)
    if (w.state == Wave::State::Running) spinning = &w;
  std::string others;
  for (const Wave& w : group.waves)
    if (w.state == Wave::State::AtBarrier) others += (others.empty() ? "; at the barrier: wave " : ", ") + std::to_string(w.id);
  throw SimError(place(*spinning, "deadlock", "the waves that run store nothing and reach no barrier" + others));
}

bool run_workgroup(Workgroup& group, u64 budget) {
  std::vector<Wave*> order;
  u64 last = group.progress, since = 0;
  for (u64 used = 0; used < budget;) {
    order.clear();
    for (Wave& w : group.waves)
      if (w.state == Wave::State::Running) order.push_back(&w);
    if (order.empty()) {
      const bool done = std::all_of(group.waves.begin(), group.waves.end(), [](const Wave& w) { return w.state == Wave::State::Ended; });
      if (done) return true;
      check_unequal(group);
      release_barrier(group);
      continue;
    }
    if (group.explore) std::shuffle(order.begin(), order.end(), group.rng);
    if (group.progress != last) last = group.progress, since = used;
    if (used - since > kStuckAfter) report_stuck(group);
    for (Wave* w : order) used += run_followed(group, *w, turn_length(group));
  }
  return false;
}

}  // namespace amdsim
