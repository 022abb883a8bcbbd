// Conversions and arithmetic of 64 lanes of f16, by the host's instructions where it has them: these give the same bits
// (nearest even, NaNs quieted with the top of their payload).
#pragma once

#include "../core/types.hpp"

namespace amdsim::arith {

// The f16 at bit `shift` (0 or 16) of each word.
void widen_halves(f32* out, const u32* words, u32 shift);
// To the low half of each word, zeros above.
void narrow_to_halves(u32* out, const f32* values);
// low[l] and high[l] to the halves of out[l], to nearest even or towards zero (finite numbers stay finite).
enum class Narrowing { nearest, towards_zero };
void narrow_pairs_to_halves(u32* out, const f32* low, const f32* high, Narrowing rounding);

// d = a op b (op c) on both halves of every word, to nearest even. False, with `d` unwritten, where a NaN comes out or
// the host lacks the instructions: then it is for the general way, which knows the rules of NaNs.
enum class HalfOp { add, sub, sub_rev, mul, fma };
template <HalfOp Op>
bool on_both_halves(u32* d, const u32* a, const u32* b, const u32* c);

}  // namespace amdsim::arith
