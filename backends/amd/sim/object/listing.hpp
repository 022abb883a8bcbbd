// The code of an object as assembly: instructions by address, branch targets as labels.
#pragma once

#include <string>
#include <vector>

#include "code_object.hpp"
#include "disassembler.hpp"

namespace amdsim::object {

struct Line {
  std::uint64_t address = 0;
  std::uint32_t size = 0;
  std::string label;  // of this address: a function's name or ".L" and the address; empty for most
  std::string text;
};

/// All executable sections, in address order.
std::vector<Line> disassemble(const CodeObject& object, const LlvmLibrary& library);

/// A whole file in the form of `clang -S`: code with source lines, kernel descriptors and metadata. Each instruction
/// carries its address, `base` added, in the comment form of llvm-objdump.
std::string assembly(const CodeObject& object, const std::vector<Line>& lines, std::uint64_t base);

}  // namespace amdsim::object
