#include "global.hpp"

#include "machine.hpp"
#include "registry.hpp"

namespace amdsim {
namespace {

void report_race(const Wave& w, const RaceReport& r, bool write, int lane, u64 address) {
  std::string other;
  if (r.same_group) {
    other = r.wave == 31 ? "other waves of the workgroup" : "wave " + std::to_string(r.wave) + " of the workgroup";
  } else if (r.group == ~0ull) {
    other = "several other workgroups";
  } else {
    const u32* grid = w.group->launch->config->grid;
    other = "workgroup (" + std::to_string(r.group % grid[0]) + ", " + std::to_string(r.group / grid[0] % grid[1]) + ", " +
            std::to_string(r.group / grid[0] / grid[1]) + ")";
  }
  const std::string order = r.same_group ? "no barrier lies between them" : "nothing orders the two workgroups";
  w.violate_at(Check::GlobalRace, std::string(write ? "writes" : "reads") + " memory that " + other + (r.other_wrote ? " wrote: " : " read: ") +
                   order + " (" + w.group->memory->describe(address) + ")", 1ull << lane, address);
}

struct Tracker {
  const Wave& w;
  Accessor me;
  const SyncClock& clock;
  explicit Tracker(const Wave& wave)
      : w(wave), me{wave.group->linear_id + 1, u32(wave.id), wave.barriers_passed, wave.group->releases}, clock(*wave.group->launch->sync) {}

  void bytes(Region& r, u64 address, u32 count, bool write, bool atomic, int lane) const {
    ShadowCell* cell = nullptr;
    for (u64 at = address & ~3ull; at < address + count; at += 4) {
      cell = cell && r.same_page(at - r.base) ? cell + 1 : r.cell(at - r.base);
      const u64 begin = std::max(at, address), end = std::min(at + 4, address + count);
      const u32 mask = ((1u << (end - at)) - 1) & ~((1u << (begin - at)) - 1);
      const RaceReport report = track_dword(*cell, me, mask, write, atomic, clock);
      if (report.found) report_race(w, report, write, lane, begin);
    }
  }
};

bool needs_tracking(const Wave& w) { return w.checking(Check::GlobalRace) && w.group->launch->track_global; }

// A plain store defines; an atomic needs defined memory; what a load reads is for the load to mark.
void check_defined(const Wave& w, const Inst& in, const GlobalAccess& a, Region& r, u64 at, int lane) {
  if (in.flags & kAtomic && r.undefined(at - r.base, a.bytes))
    w.violate_at(Check::Uninit, "atomic on memory that was never written: " + w.group->memory->describe(at), 1ull << lane, at);
  if (a.write) r.define(at - r.base, a.bytes);
}

}  // namespace

u32 undefined_global(const Wave& w, u64 address, u32 bytes) {
  const Region* r = w.group->memory->find(address, bytes);
  return r ? r->undefined(address - r->base, bytes) : 0;
}

void check_global(Wave& w, const Inst& in, const GlobalAccess& a, GlobalPointers& p) {
  const GlobalMemory& memory = *w.group->memory;
  const bool track = needs_tracking(w);
  Region* last = nullptr;
  const Tracker tracker(w);
  for (int l = 0; l < kLanes; ++l) p.host[l] = nullptr;
  for (u64 m = a.lanes; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    const u64 at = a.address[l];
    Region* r = last && at - last->base < last->size && last->size - (at - last->base) >= a.bytes ? last : memory.find(at, a.bytes);
    if (!r) {
      w.violate_at(Check::Bounds, std::string(a.write ? "write" : "read") + " of " + std::to_string(a.bytes) + " bytes, " + memory.describe(at), 1ull << l, at);
      continue;
    }
    if (at & (a.align - 1)) w.violate_at(Check::Align, "address is not a multiple of " + std::to_string(a.align), 1ull << l, at);
    if (a.write && !r->writable) {
      w.violate_at(Check::ReadOnly, "write to read-only memory: " + memory.describe(at), 1ull << l, at);
      continue;
    }
    if (track && r->writable) tracker.bytes(*r, at, a.bytes, a.write, a.atomic, l);
    if (!r->uninit.empty()) check_defined(w, in, a, *r, at, l);
    p.host[l] = r->host + (at - r->base), p.region[l] = r, last = r;
  }
  if (a.write && !a.atomic) ++w.group->progress;
  count_global(w, in, a.address, a.lanes, a.bytes);
}

const u8* check_scalar(Wave& w, const Inst& in, u64 address, u32 bytes) {
  Region* r = w.group->memory->find(address, bytes);
  if (!r) {
    w.violate_at(Check::Bounds, "scalar read of " + std::to_string(bytes) + " bytes, " + w.group->memory->describe(address), 0, address);
    return nullptr;
  }
  if (needs_tracking(w) && r->writable) Tracker(w).bytes(*r, address, bytes, false, in.mod.sc0, 0);
  w.group->counts->insts[in.index].bytes += bytes;
  return r->host + (address - r->base);
}

void note_release(Wave& w) { w.group->releases = w.group->launch->sync->release(w.group->linear_id + 1); }
void note_acquire(Wave& w) { w.group->launch->sync->acquire(w.group->linear_id + 1); }

}  // namespace amdsim
