// The 64-byte kernel descriptor (LLVM AMDGPUUsage, "Kernel Descriptor", GFX90A-GFX942 columns).
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bytes.hpp"

namespace amdsim::object {

struct Descriptor {
  std::uint32_t group_segment = 0;    // static LDS bytes
  std::uint32_t private_segment = 0;  // scratch bytes per work-item
  std::uint32_t kernarg_size = 0;
  std::int64_t entry_offset = 0;  // from the descriptor to the first instruction
  std::uint32_t rsrc3 = 0, rsrc1 = 0, rsrc2 = 0;
  std::uint16_t properties = 0;
  std::uint16_t preload = 0;  // kernarg preload: [6:0] dwords, [15:7] first dword

  /// ArchVGPRs and AccVGPRs that a wave is given: one pool, granted in eights.
  unsigned vector_registers() const { return ((rsrc1 & 0x3f) + 1) * 8; }
  /// SGPRs without the six (VCC, FLAT_SCRATCH, XNACK_MASK) that end each allocation of sixteens.
  unsigned scalar_registers() const { return std::min(102u, ((rsrc1 >> 6 & 0xf) / 2 + 1) * 16 - 6); }
  unsigned accum_offset() const { return ((rsrc3 & 0x3f) + 1) * 4; }
};

Descriptor descriptor(Bytes data);

/// The same fields as `.amdhsa_*` directives (without the prefix), as clang writes them in assembly text.
std::vector<std::pair<std::string, std::uint32_t>> directives(const Descriptor& d);

}  // namespace amdsim::object
