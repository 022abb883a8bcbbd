#include "error.hpp"

#include <array>
#include <cstdio>

namespace amdsim {
namespace {

constexpr std::array<std::string_view, kChecks> kNames = {
    "waits", "lds_race", "global_race", "hazards", "bounds",
    "align", "uninit",   "barriers",    "resources", "readonly"};

std::string lanes_text(u64 lanes) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "0x%016llx (first %d)", static_cast<unsigned long long>(lanes),
                std::countr_zero(lanes));
  return buffer;
}

std::string hex(u64 value) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(value));
  return buffer;
}

std::string render(const Violation& v) {
  std::string text = v.kind + ": " + v.reason;
  if (!v.instruction.empty()) text += "\n  instruction: " + v.instruction;
  if (v.asm_line) text += "\n  assembly line: " + std::to_string(v.asm_line);
  if (!v.source.empty()) text += "\n  source: " + v.source;
  if (v.wave >= 0) {
    text += "\n  workgroup (" + std::to_string(v.workgroup[0]) + ", " + std::to_string(v.workgroup[1]) + ", " +
            std::to_string(v.workgroup[2]) + "), wave " + std::to_string(v.wave);
  }
  if (v.lanes) text += "\n  lanes: " + lanes_text(v.lanes);
  if (v.has_address) text += "\n  address: " + hex(v.address);
  if (!v.registers.empty()) text += "\n  registers: " + v.registers;
  if (!v.other.empty()) text += "\n  other: " + v.other;
  return text;
}

}  // namespace

std::string_view check_name(Check check) { return kNames[static_cast<std::size_t>(check)]; }

Check check_from_name(std::string_view name) {
  for (int i = 0; i < kChecks; ++i)
    if (kNames[static_cast<std::size_t>(i)] == name) return static_cast<Check>(i);
  throw std::invalid_argument("unknown check '" + std::string(name) + "'");
}

SimError::SimError(Violation violation) : std::runtime_error(render(violation)), violation_(std::move(violation)) {}

}  // namespace amdsim
