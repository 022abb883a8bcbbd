// Races on global memory within a launch.
//
// Each dword has a cell with its last writer and its last readers: workgroup, wave, bytes, barrier round and release
// count of that moment. Two plain accesses to the same byte, one of them a write, race unless
//   - the same wave made both, or
//   - waves of one workgroup made them in different barrier rounds (vector memory is in order per compute unit, so
//     no vmcnt wait is needed between: LLVM's memory model for gfx942 at workgroup scope), or
//   - another workgroup's access precedes a release of that workgroup (an atomic, or a store at agent scope), and
//     this workgroup has since made an acquire (an atomic, or a load at agent scope). Which location carried the
//     message is not tracked: this orders more than the hardware does, never less, so correct code raises no alarm.
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "memory.hpp"

namespace amdsim {

struct Accessor {
  u64 group = 0;    // linear id + 1
  u32 wave = 0;
  u32 round = 0;    // barrier rounds passed
  u32 releases = 0;
};

// Release and acquire times of the workgroups of a launch.
class SyncClock {
 public:
  u32 release(u64 group);   // returns the new release count of the group
  void acquire(u64 group);
  // Has `later` acquired after `earlier` released for the (count + 1)-th time?
  bool ordered(u64 earlier, u32 count, u64 later) const;
  bool used() const { return used_; }

 private:
  struct State {
    std::vector<u64> released;
    u64 acquired = 0;
  };
  mutable std::mutex mutex_;
  std::unordered_map<u64, State> groups_;
  u64 time_ = 0;
  bool used_ = false;
};

struct RaceReport {
  bool found = false;
  bool other_wrote = false;
  u64 group = 0;  // linear id of the other workgroup, ~0 when several
  u32 wave = 0;   // 31 when several
  bool same_group = false;
};

// Records the access and reports a race with an earlier one. `mask`: bytes of the dword.
RaceReport track_dword(ShadowCell& cell, const Accessor& me, u32 mask, bool write, bool atomic, const SyncClock& clock);

}  // namespace amdsim
