// From a code object to a Program of the core.
#pragma once

#include <memory>

#include "../core/program.hpp"
#include "listing.hpp"

namespace amdsim::object {

/// Disassembles `object` and places it in an address range of its own, so that pc-relative addressing works as loaded.
std::unique_ptr<Program> make_program(const CodeObject& object, const LlvmLibrary& library);

/// The device address of a symbol of `object` in the program made from it; 0 when there is none.
std::uint64_t symbol_address(const CodeObject& object, const Program& program, std::string_view name);

}  // namespace amdsim::object
