// What the waves of chosen workgroups executed, in the compact form that the timing model replays.
#pragma once

#include <vector>

#include "types.hpp"

namespace amdsim {

// One executed instruction, with what its execution alone can tell: which addresses met in banks and lines.
struct Step {
  u32 inst = 0;        // index into Program::code
  u32 lds_clocks = 0;  // LDS: clocks with conflicts
  u32 lines = 0;       // global memory: distinct 128-byte lines
  u32 bytes = 0;       // memory: bytes moved by active lanes
};

struct Recording {
  u64 group = 0;  // linear workgroup
  std::vector<std::vector<Step>> waves;
};

}  // namespace amdsim
