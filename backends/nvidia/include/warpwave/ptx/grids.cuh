// Programmatic dependent launch (sm_90): a grid that begins while the one before it on the stream still runs.
#pragma once
#include "base.cuh"

namespace ww::ptx {

// Once all blocks have said so, or ended, the next grid may begin, if its launch allows that.
DEVICE void start_dependent_grids() { asm volatile("griddepcontrol.launch_dependents;"); }
// Until the grid before has ended and what it wrote can be read; at once if this grid began only then.
DEVICE void wait_for_grid_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

}  // namespace ww::ptx
