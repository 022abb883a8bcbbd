// Source lines of instructions from .debug_line (DWARF 4 section 6.2, DWARF 5 section 6.2).
#pragma once

#include <string>
#include <vector>

#include "elf.hpp"

namespace amdsim::object {

struct SourceLine {
  std::uint64_t address = 0;  // first instruction of the row
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  bool end = false;  // address just past a sequence: nothing is known from here on
};

/// Rows of every unit, sorted by address; empty when the object has no debug lines.
std::vector<SourceLine> source_lines(const elf::File& file);

/// The row that covers `address`, or null.
const SourceLine* line_at(const std::vector<SourceLine>& lines, std::uint64_t address);

}  // namespace amdsim::object
