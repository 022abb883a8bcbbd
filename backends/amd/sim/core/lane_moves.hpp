// Values moved between lanes by a table, as DPP does.
#pragma once

#include "types.hpp"

namespace amdsim {

// to[l] = from[map[l]] for all lanes; the tables stay within rows of 16 lanes when `in_rows`. Entries below 0 give any
// value.
void move_lanes(u32* to, const u32* from, const i8* map, bool in_rows);

}  // namespace amdsim
