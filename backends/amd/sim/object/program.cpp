#include "program.hpp"

#include <atomic>
#include <cstdio>

#include "../core/memory.hpp"

namespace amdsim::object {
namespace {

// Slots 0x10 to kFirstSlot - 1 of the address map are for code objects. They are handed out in turn: a program's
// addresses stay valid, and distinct from its neighbours', until about a thousand others have been loaded after it.
constexpr u32 kFirstObjectSlot = 0x10;

u64 next_base() {
  static std::atomic<u32> next{0};
  return u64{kFirstObjectSlot + next++ % (kFirstSlot - kFirstObjectSlot)} << kSlotShift;
}

/// A module-scope variable that code may store to; every HIP object also holds an unused `__hip_cuid_*`.
bool has_variables(const CodeObject& object) {
  for (const elf::Symbol& s : object.file.symbols)
    if (s.type == 1 && s.section < object.file.sections.size() && object.file.sections[s.section].writable() &&
        !s.name.starts_with("__hip_cuid"))
      return true;
  return false;
}

/// Assembly text would hold such a word as data, and data in code is passed over.
void require_instructions(const std::vector<Line>& lines, const std::string& target) {
  for (const Line& line : lines) {
    if (!line.text.starts_with(".long")) continue;
    char place[32];
    std::snprintf(place, sizeof place, "0x%llx", static_cast<unsigned long long>(line.address));
    throw ObjectError("the code at address " + std::string(place) + " (" + line.text + ") is no instruction of " + target);
  }
}

}  // namespace

std::unique_ptr<Program> make_program(const CodeObject& object, const LlvmLibrary& library) {
  const u64 base = next_base();
  const std::vector<Line> lines = disassemble(object, library);
  require_instructions(lines, object.target);
  auto program = Program::from_text(assembly(object, lines, base), object.target);
  DataSection image;
  image.name = "code object";
  image.bytes = load_image(object, base);
  image.writable = has_variables(object);
  program->sections = {std::move(image)};
  program->section_base = {base};
  program->data_symbols.clear();
  for (const elf::Symbol& s : object.file.symbols)
    if (s.type == 1) program->data_symbols[s.name] = {0, s.address};
  return program;
}

std::uint64_t symbol_address(const CodeObject& object, const Program& program, std::string_view name) {
  const elf::Symbol* symbol = object.symbol(name);
  return symbol ? program.section_base.at(0) + symbol->address : 0;
}

}  // namespace amdsim::object
