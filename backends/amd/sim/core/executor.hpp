// Runs the waves of one workgroup.
#pragma once

#include "workgroup.hpp"

namespace amdsim {

// Runs the group until all its waves have ended (true) or `budget` instructions are used (false: call again).
// Throws SimError at a violation.
bool run_workgroup(Workgroup& group, u64 budget);

}  // namespace amdsim
