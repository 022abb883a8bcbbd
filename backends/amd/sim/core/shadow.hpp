// Undefined values: which bytes of which lanes were never given a value.
#pragma once

#include "wave.hpp"

namespace amdsim {

// Where a byte of an SDWA destination comes from: a byte of the result (0..3), a zero, or the old destination.
inline constexpr int kZeroByte = -1, kKeptByte = -2;
int sdwa_origin(const Inst& in, int byte);

// Slow path, when a source is undefined somewhere or the destination is written in part.
void propagate_slow(Wave& w, const Inst& in, u64 exec);

inline bool sources_undefined(const Wave& w, const Inst& in) {
  u64 any = 0;
  for (int i = 0; i < in.n_vread; ++i)
    for (int r = 0; r < in.vread[i].count; ++r) any |= w.vundef[in.vread[i].first + r].any();
  for (int i = 0; i < in.n_sread; ++i)
    for (int r = 0; r < in.sread[i].count; ++r) any |= w.sundef[in.sread[i].first + r];
  return any != 0;
}

// Marks the destination's lanes (un)defined from the sources. Called before the result is written.
inline void propagate_undefined(Wave& w, const Inst& in, u64 exec) {
  if (sources_undefined(w, in)) return propagate_slow(w, in, exec);
  for (int i = 0; i < in.n_vwrite; ++i)
    for (int r = 0; r < in.vwrite[i].count; ++r) {
      ByteMask& m = w.vundef[in.vwrite[i].first + r];
      for (u64& b : m.b) b &= ~exec;
    }
  for (int i = 0; i < in.n_swrite; ++i)
    for (int r = 0; r < in.swrite[i].count; ++r) w.sundef[in.swrite[i].first + r] = 0;
}

}  // namespace amdsim
