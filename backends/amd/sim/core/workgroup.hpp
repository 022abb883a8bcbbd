// One workgroup in flight: its waves, its LDS and the barrier.
#pragma once

#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "memory.hpp"
#include "report.hpp"
#include "trace.hpp"
#include "wave.hpp"

namespace amdsim {

struct Launch;

struct Workgroup {
  const Launch* launch = nullptr;
  GlobalMemory* memory = nullptr;
  u32 id[3] = {0, 0, 0};
  u64 linear_id = 0;
  std::vector<Wave> waves;
  std::vector<u8> lds;         // the workgroup's allocation, exactly
  std::vector<u8> lds_undef;   // one byte of 0/1 per LDS byte
  u32 releases = 0;            // how often this workgroup released (see races.hpp)
  u32 barrier_round = 0;
  u64 progress = 0;  // stores, barriers and ended waves: what a spinning loop does not add to
  // Race shadow of LDS: last writer and reader of each byte; stamps up to lds_floor are ordered (see lds.cpp).
  std::vector<u32> lds_written, lds_read;
  u32 lds_event = 0, lds_floor = 0;
  Counts* counts = nullptr;    // this thread's report accumulator
  Trace* trace = nullptr;      // set in the workgroup whose wave is traced
  Recording* recording = nullptr;  // set in workgroups that the timing model replays
  std::mt19937_64 rng;
  std::unordered_map<u64, std::unique_ptr<Inst>> moved;  // instructions with indexed registers (vector_mode.hpp)
  bool explore = false;        // seeded interleaving instead of the fixed one
};

}  // namespace amdsim
