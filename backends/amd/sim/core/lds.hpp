// LDS accesses of one wave-instruction: bounds, alignment, pending direct loads, races, undefined bytes.
#pragma once

#include "waits.hpp"
#include "workgroup.hpp"

namespace amdsim {

enum class Use : u8 { Read, Write, Atomic };

// One access: byte address per lane, the same number of bytes in each.
struct LdsAccess {
  u32 address[kLanes];
  u64 lanes = 0;
  u32 bytes = 0;
  u32 align = 1;
  Use use = Use::Read;
  u64 seq = 0;         // in the counter that proves it
  bool by_vm = false;  // proven by vmcnt (direct loads, FLAT) instead of lgkmcnt
};

// Checks and records. Returns the lanes that may proceed (all, unless a check is relaxed and failed).
u64 check_lds(Wave& w, const Inst& in, LdsAccess& access);

// Race bookkeeping at barriers: what each wave had proven complete when it arrived becomes ordered.
void arrive_at_barrier(Wave& w);
void retire_at_barrier(Workgroup& group);

// Bytes to rows and back, with the undefined shadow. `row` counts dwords.
void read_lds_bytes(const Workgroup& g, u32 address, u8* to, u8* undefined, u32 bytes);
void write_lds_bytes(Workgroup& g, u32 address, const u8* from, const u8* undefined, u32 bytes);

}  // namespace amdsim
