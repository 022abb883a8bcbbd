#include "lds.hpp"

#include <algorithm>

#include "machine.hpp"
#include "registry.hpp"

namespace amdsim {
namespace {

// Race stamp of one LDS byte: event number, then atomic and several-waves flags, then the wave.
constexpr u32 kWaveMask = 31, kSeveral = 32, kAtomicBit = 64;
constexpr int kEventShift = 7;
constexpr u32 kMaxEvent = (1u << (32 - kEventShift)) - 1;
constexpr std::size_t kLogLimit = 8192;

struct Range {
  u32 begin, end;
};

bool touches(const LdsLog& log, Range r) {
  if (r.begin >= log.end || r.end <= log.begin) return false;
  for (int l = 0; l < kLanes; ++l)
    if (log.lanes >> l & 1 && log.address[l] < r.end && r.begin < log.address[l] + log.bytes) return true;
  return false;
}

bool conflicts(const LdsLog& log, const LdsAccess& a) {
  if (log.use == u8(Use::Read) && a.use == Use::Read) return false;
  return !(log.use == u8(Use::Atomic) && a.use == Use::Atomic);
}

const char* use_name(u8 use) { return use == u8(Use::Read) ? "reads" : use == u8(Use::Write) ? "writes" : "updates"; }

// The stamps only say that a conflict is possible; the log of the other waves says whether it is one.
void confirm_race(const Wave& w, const LdsAccess& a, int lane) {
  const Range r{a.address[lane], a.address[lane] + a.bytes};
  for (const Wave& other : w.group->waves) {
    if (other.id == w.id) continue;
    for (const LdsLog& log : other.lds_log) {
      if (!conflicts(log, a) || !touches(log, r)) continue;
      const Counter& c = log.by_vm ? other.vm : other.lds;
      const bool complete = log.seq <= c.done;
      const std::string why = complete ? "no barrier lies between them" :
          std::string("it was not waited for (") + (log.by_vm ? "vmcnt" : "lgkmcnt") + ") before the barrier";
      w.violate_at(Check::LdsRace, std::string("wave ") + std::to_string(w.id) + " " + use_name(u8(a.use)) + " LDS bytes that wave " +
                       std::to_string(other.id) + " " + use_name(log.use) + ": " + why, 1ull << lane, r.begin, log.inst);
      return;
    }
  }
}

bool stamp_conflict(const Workgroup& g, u32 stamp, u32 me, bool atomic) {
  if (stamp <= g.lds_floor) return false;
  if ((stamp & kWaveMask) == me && !(stamp & kSeveral)) return false;
  return !(atomic && stamp & kAtomicBit);
}

bool possible_race(const Workgroup& g, const LdsAccess& a, int lane, u32 me) {
  const u32 *written = g.lds_written.data() + a.address[lane], *read = g.lds_read.data() + a.address[lane];
  const bool atomic = a.use == Use::Atomic;
  u32 newest = 0;
  for (u32 i = 0; i < a.bytes; ++i) newest = std::max(newest, written[i]);
  if (a.use != Use::Read)
    for (u32 i = 0; i < a.bytes; ++i) newest = std::max(newest, read[i]);
  if (newest <= g.lds_floor) return false;
  for (u32 i = 0; i < a.bytes; ++i) {
    if (stamp_conflict(g, written[i], me, atomic)) return true;
    if (a.use != Use::Read && stamp_conflict(g, read[i], me, false)) return true;
  }
  return false;
}

void stamp_lane(Workgroup& g, const LdsAccess& a, int lane, u32 stamp, u32 me) {
  if (a.use != Use::Read) {
    std::fill_n(g.lds_written.begin() + a.address[lane], a.bytes, stamp);
    return;
  }
  u32* read = g.lds_read.data() + a.address[lane];
  for (u32 i = 0; i < a.bytes; ++i) {
    const bool other = read[i] > g.lds_floor && ((read[i] & kWaveMask) != me || read[i] & kSeveral);
    read[i] = stamp | (other ? kSeveral : 0);
  }
}

void restart_events(Workgroup& g) {
  g.lds_event = 1, g.lds_floor = 0;
  std::fill(g.lds_written.begin(), g.lds_written.end(), 0);
  std::fill(g.lds_read.begin(), g.lds_read.end(), 0);
  for (Wave& w : g.waves) w.lds_log.clear();
}

bool proven(const Wave& w, const LdsLog& log) { return log.seq <= (log.by_vm ? w.vm.done : w.lds.done); }

void keep_log(Wave& w, const Inst& in, const LdsAccess& a, u32 event) {
  if (!a.lanes) return;
  if (event == 0 && w.lds_log.size() >= 64)  // a single wave only needs what it has not waited for
    w.lds_log.erase(std::remove_if(w.lds_log.begin(), w.lds_log.end(), [&](const LdsLog& l) { return proven(w, l); }), w.lds_log.end());
  if (w.lds_log.size() >= kLogLimit) w.lds_log.erase(w.lds_log.begin(), w.lds_log.begin() + kLogLimit / 2);
  LdsLog& log = w.lds_log.emplace_back();
  log.inst = &in, log.event = event, log.seq = a.seq, log.by_vm = a.by_vm, log.use = u8(a.use);
  log.lanes = a.lanes, log.bytes = a.bytes, log.begin = ~0u, log.end = 0;
  std::copy(std::begin(a.address), std::end(a.address), std::begin(log.address));
  for (u64 m = a.lanes; m; m &= m - 1) {
    const u32 at = a.address[std::countr_zero(m)];
    log.begin = std::min(log.begin, at), log.end = std::max(log.end, at + a.bytes);
  }
}

void track_races(Wave& w, const Inst& in, const LdsAccess& a) {
  Workgroup& g = *w.group;
  if (g.waves.size() < 2 || !w.checking(Check::LdsRace)) {
    if (g.launch->lds_dma) keep_log(w, in, a, 0);
    return;
  }
  if (g.lds_event >= kMaxEvent) restart_events(g);
  const u32 event = ++g.lds_event, me = static_cast<u32>(w.id);
  const u32 stamp = event << kEventShift | me | (a.use == Use::Atomic ? kAtomicBit : 0);
  for (u64 m = a.lanes; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    if (possible_race(g, a, l, me)) confirm_race(w, a, l);
  }
  for (u64 m = a.lanes; m; m &= m - 1) stamp_lane(g, a, std::countr_zero(m), stamp, me);
  keep_log(w, in, a, event);
}

// The issuing wave itself may not touch bytes that its own direct load still owes.
void check_own_dma(const Wave& w, const Inst& in, const LdsAccess& a) {
  if (in.flags & kLdsDma) return;  // direct loads land in order
  for (const LdsDma& dma : w.lds_dma) {
    for (u64 m = a.lanes; m; m &= m - 1) {
      const int l = std::countr_zero(m);
      if (!dma.overlaps(a.address[l], a.address[l] + a.bytes)) continue;
      w.violate_at(Check::Waits, "touches LDS bytes that a direct load of this wave has not landed; needs s_waitcnt vmcnt(" +
                       std::to_string(w.vm.issued - dma.seq) + ")", 1ull << l, a.address[l], dma.inst);
      return;
    }
  }
}

// Nor may its direct load overwrite what an LDS operation of its own has not finished with.
void check_own_outstanding(const Wave& w, const LdsAccess& a) {
  for (const LdsLog& log : w.lds_log) {
    if (log.by_vm || log.seq <= w.lds.done) continue;
    for (u64 m = a.lanes; m; m &= m - 1) {
      const int l = std::countr_zero(m);
      const Range r{a.address[l], a.address[l] + a.bytes};
      if (!touches(log, r)) continue;
      w.violate_at(Check::Waits, "a direct load overwrites LDS bytes that an LDS operation of this wave has not finished with; needs s_waitcnt lgkmcnt(" +
                       std::to_string(w.lds.issued - log.seq) + ")", 1ull << l, r.begin, log.inst);
      return;
    }
  }
}

}  // namespace

bool LdsDma::overlaps(u32 begin, u32 end) const {
  for (int l = 0; l < kLanes; ++l) {
    const u32 at = first + stride * static_cast<u32>(l);
    if (lanes >> l & 1 && at < end && begin < at + bytes) return true;
  }
  return false;
}

u64 check_lds(Wave& w, const Inst& in, LdsAccess& a) {
  const u32 size = static_cast<u32>(w.group->lds.size());
  u64 outside = 0, misaligned = 0;
  for (int l = 0; l < kLanes; ++l) {
    const u32 at = a.address[l];
    outside |= u64(at > size || size - at < a.bytes) << l;
    misaligned |= u64((at & (a.align - 1)) != 0) << l;
  }
  outside &= a.lanes, misaligned &= a.lanes;
  if (outside) {
    const int l = std::countr_zero(outside);
    w.violate_at(Check::Bounds, "LDS access of " + std::to_string(a.bytes) + " bytes outside the workgroup's " + std::to_string(size) + " bytes",
                 outside, a.address[l]);
    a.lanes &= ~outside;
  }
  if (misaligned) {
    const int l = std::countr_zero(misaligned);
    w.violate_at(Check::Align, "LDS address is not a multiple of " + std::to_string(a.align), misaligned, a.address[l]);
  }
  if (!w.lds_dma.empty()) check_own_dma(w, in, a);
  if (in.flags & kLdsDma) check_own_outstanding(w, a);
  if (a.use == Use::Write) ++w.group->progress;
  track_races(w, in, a);
  return a.lanes;
}

void arrive_at_barrier(Wave& w) { w.arrived_lds = w.lds.done, w.arrived_vm = w.vm.done; }

void retire_at_barrier(Workgroup& g) {
  u32 oldest = g.lds_event + 1;
  for (Wave& w : g.waves) {
    auto ordered = [&](const LdsLog& log) { return log.seq <= (log.by_vm ? w.arrived_vm : w.arrived_lds); };
    w.lds_log.erase(std::remove_if(w.lds_log.begin(), w.lds_log.end(), ordered), w.lds_log.end());
    if (!w.lds_log.empty()) oldest = std::min(oldest, w.lds_log.front().event);
  }
  g.lds_floor = (oldest - 1) << kEventShift | ((1u << kEventShift) - 1);
}

void read_lds_bytes(const Workgroup& g, u32 address, u8* to, u8* undefined, u32 bytes) {
  std::memcpy(to, g.lds.data() + address, bytes);
  std::memcpy(undefined, g.lds_undef.data() + address, bytes);
}

void write_lds_bytes(Workgroup& g, u32 address, const u8* from, const u8* undefined, u32 bytes) {
  std::memcpy(g.lds.data() + address, from, bytes);
  if (undefined) std::memcpy(g.lds_undef.data() + address, undefined, bytes);
  else std::memset(g.lds_undef.data() + address, 0, bytes);
}

}  // namespace amdsim
