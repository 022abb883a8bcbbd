// ELF64 little-endian: sections, symbols, notes and dynamic relocations of an AMDGPU code object.
#pragma once

#include <string>
#include <vector>

#include "bytes.hpp"

namespace amdsim::object::elf {

struct Section {
  std::string name;
  std::uint32_t type = 0;
  std::uint64_t flags = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t alignment = 1;
  std::uint32_t link = 0;
  Bytes bytes;  // empty for SHT_NOBITS

  bool allocated() const { return flags & 2; }
  bool executable() const { return flags & 4; }
  bool writable() const { return flags & 1; }
};

struct Symbol {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint8_t type = 0;  // STT_*: 1 object, 2 function
  std::uint16_t section = 0;
};

struct Relocation {
  std::uint64_t address = 0;
  std::uint32_t type = 0;
  std::uint64_t symbol_address = 0;
  std::int64_t addend = 0;
};

struct Note {
  std::string owner;
  std::uint32_t type = 0;
  Bytes data;
};

struct File {
  std::uint8_t os_abi = 0;
  std::uint8_t abi_version = 0;
  std::uint16_t type = 0;
  std::uint16_t machine = 0;
  std::uint32_t flags = 0;
  std::vector<Section> sections;
  std::vector<Symbol> symbols;
  std::vector<Relocation> relocations;
  std::vector<Note> notes;

  const Section* section(std::string_view name) const;
};

bool is_elf(Bytes data);

/// Where the last section or table of the file ends; `data` must hold the header and the section table.
std::size_t extent(Bytes data);

/// Reads every table; the result refers into `data`, which must outlive it.
File read(Bytes data);

}  // namespace amdsim::object::elf
