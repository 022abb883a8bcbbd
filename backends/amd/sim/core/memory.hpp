// Global memory of a device: buffers of known bounds, each in its own guarded range of virtual addresses.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "types.hpp"

namespace amdsim {

inline constexpr int kSlotShift = 32;          // 4 GiB a slot
inline constexpr u64 kGuard = 64 * 1024;       // unmapped bytes before each buffer inside its slot
inline constexpr u32 kSlots = 1u << 15;        // 47-bit addresses
inline constexpr u32 kFirstSlot = 0x400;       // below: code and the data sections of programs

// One dword of a buffer in the race shadow: who wrote and who read it last in this launch (see races.hpp).
struct ShadowCell {
  std::atomic<u64> write{0};
  std::atomic<u64> read{0};
};

struct Region {
  u64 base = 0;
  u64 size = 0;
  u8* host = nullptr;
  std::string name;
  bool writable = true;
  std::vector<u64> uninit;  // one bit per byte; empty when everything is defined
  // Bit b: byte `offset + b` was never written. At most 32 bytes.
  u32 undefined(u64 offset, u32 bytes) const;
  void define(u64 offset, u64 bytes);

  // Race shadow, allocated page by page on first touch.
  static constexpr u64 kPageDwords = 1024;
  std::vector<std::atomic<ShadowCell*>> pages;
  ShadowCell* cell(u64 offset);
  // Is the dword at `offset` on the same page as the one before it?
  static bool same_page(u64 offset) { return (offset >> 2) % kPageDwords != 0; }
  void reset_shadow();
  ~Region();
};

class GlobalMemory {
 public:
  GlobalMemory();
  // Maps host memory and returns its device address. The caller keeps `host` alive.
  u64 map(void* host, u64 size, std::string name, bool writable = true);
  u64 map_at(u64 base, void* host, u64 size, std::string name, bool writable);
  void unmap(u64 base);
  // The region whose slot holds `address` (which may lie outside the region's bounds), or null.
  Region* slot(u64 address) const {
    const u64 index = address >> kSlotShift;
    return index < kSlots ? slots_[index] : nullptr;
  }
  // The region that holds all of [address, address + bytes), or null.
  Region* find(u64 address, u64 bytes) const {
    Region* r = slot(address);
    if (!r || address - r->base >= r->size || r->size - (address - r->base) < bytes) return nullptr;
    return r;
  }
  std::string describe(u64 address) const;  // "12 bytes past the end of buffer 'arg 1' (4096 bytes)"
  void reset_shadows();

 private:
  std::vector<Region*> slots_;
  std::vector<std::unique_ptr<Region>> regions_;
  u32 next_slot_ = kFirstSlot;
  std::vector<u32> free_slots_;
};

}  // namespace amdsim
