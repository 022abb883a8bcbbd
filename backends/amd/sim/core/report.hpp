// What a launch counted, as plain data. Bindings and printers turn it into tables and listings.
#pragma once

#include <string>
#include <vector>

#include "record.hpp"
#include "trace.hpp"
#include "types.hpp"

namespace amdsim {

struct InstCounts {
  u64 executed = 0;        // waves that issued it
  u64 active_lanes = 0;    // sum over executions
  u64 bytes = 0;           // memory: bytes moved by active lanes
  u64 lines = 0;           // global memory: distinct 128-byte lines touched, summed over executions
  u64 lds_cycles = 0;      // LDS: clocks with conflicts
  u64 lds_ideal = 0;       // LDS: clocks without
};

// Accumulated per thread and merged; index = position in Program::code.
struct Counts {
  std::vector<InstCounts> insts;
  u64 waves = 0, workgroups = 0, barriers = 0;
};

struct Report {
  std::string kernel, target;
  Counts counts;
  u64 instructions = 0;   // wave-instructions
  double seconds = 0;     // host time of the simulation
  u32 vgprs = 0, agprs = 0, sgprs = 0, lds_bytes = 0, scratch_bytes = 0;
  u32 waves_per_group = 0;
  int occupancy_waves_per_simd = 0;
  Trace trace;            // empty unless LaunchConfig::trace_group was set
  std::vector<Recording> recordings;  // of LaunchConfig::record_groups, in that order
};

}  // namespace amdsim
