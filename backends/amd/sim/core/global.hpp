// Accesses of one wave-instruction to global memory: bounds, alignment, races; and the apertures of FLAT.
#pragma once

#include "waits.hpp"
#include "workgroup.hpp"

namespace amdsim {

struct GlobalAccess {
  u64 address[kLanes];
  u64 lanes = 0;
  u32 bytes = 0;
  u32 align = 1;
  bool write = false;
  bool atomic = false;    // atomics, and loads and stores at agent or system scope
};

// Host pointer of a checked location, or null when the check that failed is relaxed.
struct GlobalPointers {
  u8* host[kLanes];
  Region* region[kLanes];
};

// Bounds, alignment, read-only and race checks of all lanes; fills pointers of the lanes that may proceed.
void check_global(Wave& w, const Inst& in, const GlobalAccess& access, GlobalPointers& pointers);

// Bytes of [address, address + bytes) that were never written, one bit each; at most 32 bytes.
u32 undefined_global(const Wave& w, u64 address, u32 bytes);

// A scalar load: one location, read by the whole wave.
const u8* check_scalar(Wave& w, const Inst& in, u64 address, u32 bytes);

void count_global(Wave& w, const Inst& in, const u64* address, u64 lanes, u32 bytes);

// Ordering between workgroups that communicate through atomics (only in launches that contain any).
void note_release(Wave& w);
void note_acquire(Wave& w);

}  // namespace amdsim
