#include "memory.hpp"

#include <algorithm>
#include <stdexcept>

#include "error.hpp"

namespace amdsim {

ShadowCell* Region::cell(u64 offset) {
  const u64 dword = offset >> 2, page = dword / kPageDwords;
  ShadowCell* cells = pages[page].load(std::memory_order_acquire);
  if (!cells) {
    auto* fresh = new ShadowCell[kPageDwords];
    if (pages[page].compare_exchange_strong(cells, fresh, std::memory_order_acq_rel)) cells = fresh;
    else delete[] fresh;
  }
  return cells + dword % kPageDwords;
}

// Workgroups on other threads share the words, hence the atomic accesses.
u32 Region::undefined(u64 offset, u32 bytes) const {
  if (uninit.empty()) return 0;
  u32 mask = 0;
  for (u32 b = 0; b < bytes; ++b) {
    u64& word = const_cast<u64&>(uninit[(offset + b) / 64]);
    mask |= u32(std::atomic_ref<u64>(word).load(std::memory_order_relaxed) >> (offset + b) % 64 & 1) << b;
  }
  return mask;
}

void Region::define(u64 offset, u64 bytes) {
  if (uninit.empty()) return;
  for (u64 at = offset, end = offset + bytes; at < end;) {
    const u64 first = at % 64, count = std::min<u64>(64 - first, end - at);
    const u64 mask = (count == 64 ? ~0ull : (1ull << count) - 1) << first;
    std::atomic_ref<u64>(uninit[at / 64]).fetch_and(~mask, std::memory_order_relaxed);
    at += count;
  }
}

void Region::reset_shadow() {
  for (auto& page : pages) delete[] page.exchange(nullptr);
}

Region::~Region() { reset_shadow(); }

GlobalMemory::GlobalMemory() : slots_(kSlots, nullptr) {}

u64 GlobalMemory::map(void* host, u64 size, std::string name, bool writable) {
  const u32 count = static_cast<u32>((size + kGuard + (1ull << kSlotShift) - 1) >> kSlotShift);
  u32 first = next_slot_;
  if (count == 1 && !free_slots_.empty()) first = free_slots_.back(), free_slots_.pop_back();
  else next_slot_ += count;
  if (next_slot_ > kSlots) throw LoadError("out of simulated address space");
  return map_at((u64(first) << kSlotShift) + kGuard, host, size, std::move(name), writable);
}

u64 GlobalMemory::map_at(u64 base, void* host, u64 size, std::string name, bool writable) {
  auto region = std::make_unique<Region>();
  region->base = base, region->size = size, region->host = static_cast<u8*>(host);
  region->name = std::move(name), region->writable = writable;
  region->pages = std::vector<std::atomic<ShadowCell*>>(((size + 3) / 4 + Region::kPageDwords - 1) / Region::kPageDwords);
  for (u64 s = base >> kSlotShift; s <= (base + (size ? size - 1 : 0)) >> kSlotShift; ++s) {
    if (slots_.at(s)) throw LoadError("overlapping buffers");
    slots_[s] = region.get();
  }
  regions_.push_back(std::move(region));
  return base;
}

void GlobalMemory::unmap(u64 base) {
  auto it = std::find_if(regions_.begin(), regions_.end(), [&](const auto& r) { return r->base == base; });
  if (it == regions_.end()) throw LoadError("unmap of an address that is not the start of a buffer");
  u32 count = 0;
  for (u64 s = base >> kSlotShift; s < kSlots && slots_[s] == it->get(); ++s, ++count) slots_[s] = nullptr;
  const u64 first = base >> kSlotShift;
  const bool chosen_here = first >= kFirstSlot && first < next_slot_;  // not by who called map_at, who may use it again
  if (count == 1 && chosen_here) free_slots_.push_back(static_cast<u32>(first));
  regions_.erase(it);
}

std::string GlobalMemory::describe(u64 address) const {
  const Region* r = slot(address);
  if (!r) return "no buffer is near this address";
  const std::string name = "buffer '" + r->name + "' (" + std::to_string(r->size) + " bytes)";
  if (address < r->base) return std::to_string(r->base - address) + " bytes before " + name;
  const u64 offset = address - r->base;
  if (offset >= r->size) return std::to_string(offset - r->size) + " bytes past the end of " + name;
  return "byte " + std::to_string(offset) + " of " + name;
}

void GlobalMemory::reset_shadows() {
  for (auto& region : regions_) region->reset_shadow();
}

}  // namespace amdsim
