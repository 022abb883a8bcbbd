// Conversions of 64 lanes between f16 and f32, by the host's instructions where it has them: these give the same bits
// (nearest even, NaNs quieted with the top of their payload).
#pragma once

#include "../core/types.hpp"

namespace amdsim::arith {

// The f16 at bit `shift` (0 or 16) of each word.
void widen_halves(f32* out, const u32* words, u32 shift);
// To the low half of each word, zeros above.
void narrow_to_halves(u32* out, const f32* values);

}  // namespace amdsim::arith
