// MODE around a vector instruction: flushing of subnormal sources and results, and the rounding direction of f32 and
// f64 operations. The default MODE of a kernel needs none of it.
#pragma once

#include <optional>

#include "../arith/floats.hpp"
#include "../insns/vop.hpp"
#include "fetch.hpp"

namespace amdsim {

inline bool mode_is_plain(const Mode& m) {
  return m.rounding_and_denormals() == Mode{}.rounding_and_denormals();
}

// Lives around the lane function. Sources are replaced by flushed copies in `buffer`.
class FloatMode {
 public:
  FloatMode(const Mode& mode, const Inst& in, LaneArgs& io, FetchBuffer& buffer);
  void finish(u32* result) const;  // flushes the result in place

 private:
  const Mode& mode_;
  const Inst& in_;
  std::optional<arith::HostRounding> rounding_;
};

}  // namespace amdsim
