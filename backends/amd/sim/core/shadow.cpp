#include "shadow.hpp"

#include "registry.hpp"

namespace amdsim {
namespace {

u64 scalar_lanes(const Wave& w, const Inst& in) {
  u64 bits = 0;
  for (int i = 0; i < in.n_sread; ++i)
    for (int r = 0; r < in.sread[i].count; ++r) bits |= w.sundef[in.sread[i].first + r];
  return bits ? kAllLanes : 0;
}

}  // namespace

// Lane-wise default: any undefined byte of any source makes the lane's whole result undefined.
void propagate_slow(Wave& w, const Inst& in, u64 exec) {
  if (in.desc->shadow) return in.desc->shadow(w, in);
  u64 lanes = scalar_lanes(w, in);
  for (int i = 0; i < in.n_vread; ++i)
    for (int r = 0; r < in.vread[i].count; ++r) lanes |= w.vundef[in.vread[i].first + r].any();
  if (in.flags & kCrossLane && lanes & exec) lanes = kAllLanes;
  for (int i = 0; i < in.n_vwrite; ++i)
    for (int r = 0; r < in.vwrite[i].count; ++r)
      for (u64& b : w.vundef[in.vwrite[i].first + r].b) b = (b & ~exec) | (lanes & exec);
  const u64 mask = lanes & exec;
  for (int i = 0; i < in.n_swrite; ++i) {
    if (in.swrite[i].count == 2) w.set_undef_pair(in.swrite[i].first, mask);
    else w.sundef[in.swrite[i].first] = mask ? ~0u : 0;
  }
}

}  // namespace amdsim
