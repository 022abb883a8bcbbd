// Every fact that differs between gfx942 and gfx950, in one table.
#pragma once

#include <string_view>

#include "types.hpp"

namespace amdsim {

struct Target {
  std::string_view name;
  u8 bit;                // Targets flag
  u32 lds_bytes;         // per CU, and the most a workgroup may allocate
  u32 lds_granule;
  int lds_banks_wide;    // banks seen by b64/b128/transposing reads
  bool fp8_fnuz;         // fp8 formats are FNUZ (else OCP)
  bool lds_dma_wide;     // 12- and 16-byte direct-to-LDS loads
  int xdl_extra[4];      // wait states after an XDL write before any VALU/memory use: 2, 4, 8, 16 passes
  int xdl_srcc_extra[4]; // before an overlapping, not identical, SrcC of an XDL
  int dgemm16_valu, dgemm16_srcc;
  int compute_units;
};

// Wait states: CDNA3 ISA table 11, CDNA4 ISA table 38, LLVM GCNHazardRecognizer.
inline constexpr Target kTargets[2] = {
    {"gfx942", 1, 64 * 1024, 512, 32, true, false, {5, 7, 11, 19}, {3, 5, 9, 17}, 11, 9, 304},
    {"gfx950", 2, 160 * 1024, 1280, 64, false, true, {5, 8, 12, 20}, {4, 6, 10, 18}, 19, 17, 256},
};

const Target* find_target(std::string_view name);

}  // namespace amdsim
