// The public C++ interface: load a Program, map buffers into a Machine, launch a kernel, read the Report.
#pragma once

#include <string>
#include <vector>

#include "error.hpp"
#include "memory.hpp"
#include "program.hpp"
#include "races.hpp"
#include "report.hpp"

namespace amdsim {

struct LaunchConfig {
  std::string kernel;
  u32 grid[3] = {1, 1, 1};   // in workgroups
  u32 block[3] = {1, 1, 1};  // in work-items
  std::vector<u8> kernarg;   // explicit arguments, already laid out; implicit ones are appended by launch()
  u32 dynamic_lds = 0;
  bool sequential_accumulate = false;  // MFMA by the rule "sequential-rne" instead of the hardware's grouped sums
  u64 seed = 0;              // 0: the fixed interleaving; others explore
  int threads = 0;           // 0: one per core
  u32 relaxed = 0;           // bit per Check
  u64 max_instructions = 0;  // per wave; 0: a limit that only runaway loops reach
  i64 trace_group = -1;      // linear workgroup whose wave `trace_wave` is traced; -1: none
  int trace_wave = 0;
  std::vector<u64> record_groups;  // when not empty: only these linear workgroups run, and are recorded
};

// A launch in progress: what every wave needs to see.
struct Launch {
  const Program* program = nullptr;
  const Kernel* kernel = nullptr;
  const LaunchConfig* config = nullptr;
  GlobalMemory* memory = nullptr;
  Trace* trace = nullptr;
  std::vector<Recording>* recordings = nullptr;
  u32 checks = 0;
  u64 kernarg_address = 0, dispatch_address = 0, queue_address = 0;
  std::vector<u8> kernarg, dispatch, queue;
  u32 lds_bytes = 0;
  u32 waves_per_group = 0;
  SyncClock* sync = nullptr;
  bool track_global = true;  // false for a single wave in all, where nothing can race
  bool lds_dma = false;      // the program has direct loads to LDS
  bool ordered = false;      // workgroups communicate or update atomically: one thread, interleaved in turn
};

class Machine {
 public:
  explicit Machine(const Target& target) : target_(target) {}
  GlobalMemory& memory() { return memory_; }
  const Target& target() const { return target_; }
  // Maps the program's data sections. Its writable sections keep their contents between launches.
  void load(Program& program);
  void unload(Program& program);
  // Runs to completion; throws SimError at the first violation. Not re-entrant.
  Report launch(const Program& program, const LaunchConfig& config);

 private:
  const Target& target_;
  GlobalMemory memory_;
};

}  // namespace amdsim
