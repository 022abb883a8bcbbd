// LDS bank conflicts from the phase tables (amd.md section 2; hipkittens.md 2(e)).
#pragma once

#include "target.hpp"
#include "types.hpp"

namespace amdsim {

struct BankCost {
  u32 cycles = 0;  // clocks with conflicts
  u32 ideal = 0;   // clocks when no two lanes of a phase meet in a bank
};

// `bytes` per lane at `address`; write selects the write phases.
BankCost bank_cost(const Target& target, const u32* address, u64 lanes, u32 bytes, bool write);

}  // namespace amdsim
