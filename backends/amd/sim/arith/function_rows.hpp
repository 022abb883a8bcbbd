// log, rsq, sin and cos of 64 f32: exact reductions, then f64 arithmetic, then the special cases, each a loop of its own
// over words of one width, which compilers vectorise.
#pragma once

#include "../core/types.hpp"

namespace amdsim::arith {

// `d` may be `a`.
void log2_row(u32* d, const u32* a);
void rsqrt_row(u32* d, const u32* a);
void sin_row(u32* d, const u32* a);
void cos_row(u32* d, const u32* a);

}  // namespace amdsim::arith
