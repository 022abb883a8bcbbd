#include "vop_modes.hpp"

namespace amdsim {

WARPWAVE_MULTIVERSION void replace_low_halves(u32* d, const u32* fresh) {
  for (int l = 0; l < kLanes; ++l) d[l] = (d[l] & 0xffff0000u) | (fresh[l] & 0xffffu);
}
WARPWAVE_MULTIVERSION void clear_high_halves(u32* d) {
  for (int l = 0; l < kLanes; ++l) d[l] &= 0xffffu;
}

}  // namespace amdsim
