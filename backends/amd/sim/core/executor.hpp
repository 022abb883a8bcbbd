// Runs the waves of one workgroup.
#pragma once

#include "workgroup.hpp"

namespace amdsim {

// Runs the group until all its waves have ended (true) or `budget` instructions are used (false: call again).
// Throws SimError at a violation.
bool run_workgroup(Workgroup& group, u64 budget);

// Instructions without any store, barrier or ended wave after which a group, or the groups in flight together, are
// held to be waiting for ever. Plain arithmetic of that length between two LDS or memory writes does not occur.
inline constexpr u64 kStuckAfter = 1u << 24;
[[noreturn]] void report_stuck(const Workgroup& group);

}  // namespace amdsim
