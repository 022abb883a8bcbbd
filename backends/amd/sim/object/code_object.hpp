// An AMDGPU code object (versions 4 to 6): kernels with their metadata, symbols, loadable image, source lines.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "descriptor.hpp"
#include "elf.hpp"
#include "line_table.hpp"

namespace amdsim::object {

struct Argument {
  std::string name;
  std::string kind;  // "global_buffer", "by_value", "hidden_block_count_x", ... as in the metadata
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

struct Kernel {
  std::string name;
  std::uint64_t entry = 0;  // address of the first instruction, in the object's own address space
  Descriptor descriptor;
  std::vector<Argument> arguments;  // explicit and hidden, by offset
  std::uint32_t kernarg_align = 8;
  std::uint32_t max_flat_workgroup_size = 1024;
  std::uint32_t vgpr_count = 0, agpr_count = 0, sgpr_count = 0, vgpr_spills = 0, sgpr_spills = 0;
};

struct CodeObject {
  std::shared_ptr<const std::vector<std::uint8_t>> bytes;  // what the spans below refer into
  std::string target;                                      // "gfx942" or "gfx950"
  std::string target_id;                                   // with features: "gfx942:sramecc+:xnack-"
  unsigned version = 0;                                    // 4, 5 or 6
  elf::File file;
  std::vector<Kernel> kernels;
  std::vector<SourceLine> lines;

  const Kernel* kernel(std::string_view name) const;
  const elf::Symbol* symbol(std::string_view name) const;
  std::uint64_t image_size() const;
};

/// Whether `name` can stand as a label in assembly text.
bool is_label(std::string_view name);

/// Reads an ELF code object, or the entry for `target` out of an offload bundle.
CodeObject read(std::vector<std::uint8_t> data, std::string_view target = {});

/// The bytes that a loader would place at address `base`, relocations applied.
std::vector<std::uint8_t> load_image(const CodeObject& object, std::uint64_t base);

}  // namespace amdsim::object
