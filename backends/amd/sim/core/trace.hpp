// What one wave did, instruction by instruction: filled only for the wave that the launch asks for.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "inst.hpp"

namespace amdsim {

struct Wave;

struct TraceStep {
  u32 inst = 0;  // index into Program::code
  u64 exec = 0;  // before the instruction
  bool scc = false;  // after it
  // Registers written and their values after the instruction: scalars whole, vectors the lowest active lane.
  std::vector<std::pair<std::string, u64>> results;
};

struct Trace {
  static constexpr std::size_t kLimit = 1'000'000;  // steps kept; a longer wave is cut here
  u64 group = 0;
  int wave = 0;
  std::vector<TraceStep> steps;
};

/// Appends the instruction that has just executed; `exec` is the mask it executed under.
void record(Trace& trace, const Wave& wave, const Inst& inst, u64 exec);

}  // namespace amdsim
