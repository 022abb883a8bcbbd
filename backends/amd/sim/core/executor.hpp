// Runs the waves of one workgroup.
#pragma once

#include "workgroup.hpp"

namespace amdsim {

// Runs every wave to its end; throws SimError at a violation or a deadlock.
void run_workgroup(Workgroup& group);

}  // namespace amdsim
