#include "mfma_layout.hpp"

namespace amdsim {

int item_to_k(int item, int group, int groups, int run) { return item / run * run * groups + group * run + item % run; }

namespace {

// A and B mirror each other: lane = row + rows * (block + blocks * group).
template <class Place>
std::vector<i32> operand_layout(const MatrixShape& s, int rows, Place place) {
  const int items = s.k * rows * s.blocks / kLanes;
  const int groups = kLanes / (rows * s.blocks);
  std::vector<i32> index(static_cast<std::size_t>(items * kLanes));
  for (int item = 0; item < items; ++item)
    for (int lane = 0; lane < kLanes; ++lane) {
      const int row = lane % rows, block = lane / rows % s.blocks, group = lane / (rows * s.blocks);
      const int k = item_to_k(item, group, groups, s.run ? s.run : items);
      index[static_cast<std::size_t>(item * kLanes + lane)] = place(block, row, k);
    }
  return index;
}

}  // namespace

std::vector<i32> a_layout(const MatrixShape& s) {
  return operand_layout(s, s.m, [&](int block, int i, int k) { return (block * s.m + i) * s.k + k; });
}

std::vector<i32> b_layout(const MatrixShape& s) {
  const int lanes = padded_lanes(s.n);
  return operand_layout(s, s.n, [&](int block, int j, int k) { return (block * s.k + k) * lanes + j; });
}

std::vector<i32> c_layout(const MatrixShape& s, bool f64) {
  const int h = f64 ? 1 : 4, lanes = padded_lanes(s.n);
  const int in_lanes = (kLanes * h + s.n * s.m - 1) / (s.n * s.m);  // blocks side by side in the lanes
  const int tiles = kLanes / in_lanes / s.n, g = s.m / (h * tiles);
  const int items = s.m * s.n * s.blocks / kLanes;
  std::vector<i32> index(static_cast<std::size_t>(items * kLanes), -1);
  for (int b = 0; b < s.blocks; ++b)
    for (int i = 0; i < s.m; ++i)
      for (int j = 0; j < s.n; ++j) {
        const int item = i % h + h * (i / (h * tiles) + g * (b / in_lanes));
        const int lane = j + s.n * (i / h % tiles + tiles * (b % in_lanes));
        index[static_cast<std::size_t>(item * kLanes + lane)] = (b * s.m + i) * lanes + j;
      }
  return index;
}

}  // namespace amdsim
