// Modes in which vector instructions are not what they say: VGPR indexing (s_set_gpr_idx_on) and skipping (s_setvskip).
#pragma once

#include "wave.hpp"

namespace amdsim {

// Bits of Wave::vector_mode.
inline constexpr u8 kIndexedVgprs = 1, kSkipsVector = 2;

// What the wave executes in place of `in` while a mode is on. Lives as long as the workgroup.
const Inst& under_vector_mode(Wave& w, const Inst& in);

}  // namespace amdsim
