// Turns one assembly statement into a decoded instruction.
#pragma once

#include "program.hpp"
#include "registry.hpp"

namespace amdsim {

struct Decoder {
  Program& program;
  std::map<std::string, LdsSymbol>& lds;
  std::unordered_map<std::string, u64> lds_offset;
  std::unordered_map<u64, const u32*> splats;  // constants already in the pool

  Inst decode(const AsmInst& text, u32 index);
  const u32* splat(u64 value, bool wide);
};

// Fills the register ranges, flags and resource needs that the checks use.
void derive_checks(Inst& inst, const Target& target);

}  // namespace amdsim
