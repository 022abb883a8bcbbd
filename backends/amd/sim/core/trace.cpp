#include "trace.hpp"

#include "wave.hpp"

namespace amdsim {
namespace {

std::string span(char file, int first, int count) {
  if (count == 1) return file + std::to_string(first);
  return std::string(1, file) + '[' + std::to_string(first) + ':' + std::to_string(first + count - 1) + ']';
}

std::string scalar_name(const RegRange& r) {
  if (r.first == sreg::kVcc) return "vcc";
  if (r.first == sreg::kExec) return "exec";
  if (r.first == sreg::kM0) return "m0";
  return span('s', r.first, r.count);
}

std::string vector_name(const RegRange& r) {
  const bool agpr = r.first >= kAgprRow;
  return span(agpr ? 'a' : 'v', agpr ? r.first - kAgprRow : r.first, r.count);
}

}  // namespace

void record(Trace& trace, const Wave& w, const Inst& in, u64 exec) {
  if (trace.steps.size() >= Trace::kLimit) return;
  TraceStep step{in.index, exec, w.scc, {}};
  for (int i = 0; i < in.n_swrite; ++i) {
    const RegRange& r = in.swrite[i];
    step.results.emplace_back(scalar_name(r), r.count > 1 ? w.pair(r.first) : w.sgpr[r.first]);
  }
  const int lane = exec ? std::countr_zero(exec) : 0;
  for (int i = 0; i < in.n_vwrite; ++i) {
    const RegRange& r = in.vwrite[i];
    u64 value = w.v[r.first][lane];
    if (r.count > 1) value |= u64{w.v[r.first + 1][lane]} << 32;
    step.results.emplace_back(vector_name(r), value);
  }
  trace.steps.push_back(std::move(step));
}

}  // namespace amdsim
