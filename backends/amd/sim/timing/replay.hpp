// Replays what the waves of a compute unit executed, slot by slot, and tells when each instruction was issued.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "../core/record.hpp"
#include "op.hpp"

namespace amdsim::timing {

// What an instruction waited for, beyond the slot after its predecessor.
enum class Stall : u8 { None, VectorMemory, Lds, Barrier, Matrix, Vector, Dependency, LdsPort, MemoryPort, Branch, Idle, Arbitration };
inline constexpr int kStalls = 12;
extern const char* const kStallNames[kStalls];
extern const char* const kUnitNames[kUnits];

struct WaveSteps {
  int group = 0;  // waves of one group share a barrier
  int simd = 0;
  const Step* steps = nullptr;
  std::size_t count = 0;
};

struct Result {
  u64 clocks = 0;                                 // until the last wave has ended
  std::array<u64, kUnits> issued{};               // instructions by port
  u64 matrix_busy = 0, vector_busy = 0;           // clocks, summed over the SIMDs
  u64 lds_busy = 0, lds_port_busy = 0, memory_busy = 0;
  double memory_bytes = 0;
  std::vector<std::array<u64, kStalls>> stalls;   // clocks by instruction and reason, summed over the waves
  std::vector<std::vector<u64>> issue;            // by wave and step
};

Result replay(const std::vector<Op>& ops, const std::vector<WaveSteps>& waves, const Rates& rates);

}  // namespace amdsim::timing
