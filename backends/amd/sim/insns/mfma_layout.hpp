// Where the elements of a matrix instruction's operands live: lane and item (element number within the lane's packed
// registers) <-> matrix coordinates. CDNA4 ISA 7.1.4 gives the general rule; 7.3 and 7.5 the exceptions of gfx950.
#pragma once

#include <vector>

#include "../core/types.hpp"

namespace amdsim {

struct MatrixShape {
  int m, n, k, blocks;
  int run;  // consecutive k that a lane holds before it jumps to its next run; 0: all of them
};

// k of `item` of a lane in lane group `group` of `groups`.
int item_to_k(int item, int group, int groups, int run);

// index[item * 64 + lane] into the operand as the arithmetic wants it, -1 where nothing lives.
// A: block * m * k + i * k + kk.   B: block * k * lanes + kk * lanes + j, lanes = n rounded up to 16.
// C and D: block * m * lanes + i * lanes + j, one item per register (f64: per register pair).
std::vector<i32> a_layout(const MatrixShape& shape);
std::vector<i32> b_layout(const MatrixShape& shape);
std::vector<i32> c_layout(const MatrixShape& shape, bool f64);

inline int padded_lanes(int n) { return (n + 15) / 16 * 16; }

}  // namespace amdsim
