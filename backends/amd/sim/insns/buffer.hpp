// Buffer descriptors: addresses and range checks of MUBUF instructions.
#pragma once

#include "vmem.hpp"

namespace amdsim {

// The 128-bit resource (CDNA3/4 ISA 9.?, "Buffer Resource Descriptor").
struct BufferResource {
  u64 base = 0;
  u32 stride = 0, records = 0;
  bool swizzle = false, add_tid = false;
};

struct BufferLanes {
  GlobalAccess access;   // addresses of all lanes; lanes = those wholly in range
  u32 offset[kLanes];    // what the range check compares
  u64 index_out = 0;     // structured: index beyond num_records
  BufferResource resource;
};

// vector/resource/scalar: operand slots of vaddr, srsrc and soffset.
BufferLanes buffer_lanes(Wave& w, const Inst& in, int vector, int resource, int scalar, MemType type, bool write);
// Lanes whose dword `d` lies inside the descriptor.
u64 dword_in_range(const BufferLanes& b, u64 lanes, u32 d, u32 bytes);

}  // namespace amdsim
