#include "races.hpp"

namespace amdsim {
namespace {

// Cell: round 15 | releases 11 | atomic 1 | mask 4 | wave 5 | group 28.
constexpr u64 kSeveralGroups = (1ull << 28) - 1;
constexpr u32 kSeveralWaves = 31, kMaxReleases = (1u << 11) - 1;

struct Cell {
  u64 group = 0;
  u32 wave = 0, mask = 0, releases = 0, round = 0;
  bool atomic = false;
};

Cell unpack(u64 c) {
  return {c & kSeveralGroups, u32(c >> 28 & 31), u32(c >> 33 & 15), u32(c >> 38 & kMaxReleases), u32(c >> 49), bool(c >> 37 & 1)};
}

u64 pack(const Cell& c) {
  return c.group | u64(c.wave) << 28 | u64(c.mask) << 33 | u64(c.atomic) << 37 | u64(c.releases) << 38 | u64(c.round & 0x7fff) << 49;
}

bool unordered(const Cell& c, const Accessor& me, bool atomic, const SyncClock& clock) {
  if (c.atomic && atomic) return false;
  if (c.group != me.group) {
    if (c.group == kSeveralGroups) return !clock.used();
    return c.releases >= kMaxReleases ? false : !clock.ordered(c.group, c.releases, me.group);
  }
  return c.wave != me.wave && c.round == (me.round & 0x7fff);
}

Cell mine(const Accessor& me, u32 mask, bool atomic) {
  return {me.group & kSeveralGroups, me.wave, mask, me.releases < kMaxReleases ? me.releases : kMaxReleases, me.round & 0x7fff, atomic};
}

// Readers accumulate: several waves of one group in one round, or several groups, of the bytes all of them read.
u64 merge_reader(u64 old, const Cell& me) {
  const Cell c = unpack(old);
  if (!old || !(c.mask & me.mask)) return pack(me);
  // One state for all times: further readers change nothing, so that threads share the cache line.
  if (c.group != me.group) return pack({kSeveralGroups, kSeveralWaves, c.mask & me.mask, 0, 0, c.atomic && me.atomic});
  if (c.round != me.round) return pack(me);
  if (c.wave == me.wave) return pack({me.group, me.wave, c.mask | me.mask, me.releases, me.round, c.atomic && me.atomic});
  return pack({me.group, kSeveralWaves, c.mask & me.mask, me.releases, me.round, c.atomic && me.atomic});
}

RaceReport report(const Cell& c, const Accessor& me, bool wrote) {
  return {true, wrote, c.group == kSeveralGroups ? ~0ull : c.group - 1, c.wave, c.group == me.group};
}

}  // namespace

RaceReport track_dword(ShadowCell& cell, const Accessor& me, u32 mask, bool write, bool atomic, const SyncClock& clock) {
  const u64 w = cell.write.load(std::memory_order_relaxed);
  const Cell writer = unpack(w);
  if (w && writer.mask & mask && unordered(writer, me, atomic, clock)) return report(writer, me, true);
  const Cell self = mine(me, mask, atomic);
  u64 r = cell.read.load(std::memory_order_relaxed);
  if (!write) {
    for (;;) {
      const u64 merged = merge_reader(r, self);
      if (merged == r || cell.read.compare_exchange_weak(r, merged, std::memory_order_relaxed)) return {};
    }
  }
  const Cell reader = unpack(r);
  if (r && reader.mask & mask && unordered(reader, me, atomic, clock)) return report(reader, me, false);
  const bool extends = w && writer.group == self.group && writer.wave == self.wave && writer.round == self.round &&
                       writer.releases == self.releases && writer.atomic == self.atomic;
  Cell next = self;
  if (extends) next.mask |= writer.mask;
  cell.write.store(pack(next), std::memory_order_relaxed);
  return {};
}

u32 SyncClock::release(u64 group) {
  std::lock_guard lock(mutex_);
  used_ = true;
  auto& state = groups_[group];
  state.released.push_back(++time_);
  return static_cast<u32>(state.released.size());
}

void SyncClock::acquire(u64 group) {
  std::lock_guard lock(mutex_);
  used_ = true;
  groups_[group].acquired = time_;
}

bool SyncClock::ordered(u64 earlier, u32 count, u64 later) const {
  if (!used_) return false;
  std::lock_guard lock(mutex_);
  auto from = groups_.find(earlier), to = groups_.find(later);
  if (from == groups_.end() || to == groups_.end() || count >= from->second.released.size()) return false;
  return from->second.released[count] <= to->second.acquired;
}

}  // namespace amdsim
