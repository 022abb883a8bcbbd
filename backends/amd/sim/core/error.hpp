// The structured violation that stops a run, and the names of the checks.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "types.hpp"

namespace amdsim {

// Every strict check can be relaxed by its name (see check_name); Unsupported and Deadlock cannot.
enum class Check : u8 {
  Waits,       // a register or LDS range is used before the wait that lands it
  LdsRace,     // two waves of a workgroup touch LDS without an ordering barrier
  GlobalRace,  // two waves or workgroups touch global memory without ordering
  Hazards,     // a software wait state is missing
  Bounds,      // out-of-bounds address
  Align,       // misaligned address
  Uninit,      // an undefined value reaches memory, an address or control flow
  Barriers,    // waves that reach a different number of barriers
  Resources,   // the kernel descriptor allocates less than the code uses
  ReadOnly,    // a store to memory the launch declared constant
  Count
};

inline constexpr int kChecks = static_cast<int>(Check::Count);
std::string_view check_name(Check check);
Check check_from_name(std::string_view name);  // throws std::invalid_argument

// What stopped the run. `kind` is a check name, or "unsupported", "deadlock", "trap", "limit".
struct Violation {
  std::string kind;
  std::string reason;
  std::string instruction;
  int asm_line = 0;
  std::string source;  // "file:line" from debug lines, empty when absent
  std::string kernel;
  int wave = -1;
  u32 workgroup[3] = {0, 0, 0};
  u64 lanes = 0;
  u64 address = 0;
  bool has_address = false;
  std::string registers;
  std::string other;  // second instruction of a race or of a missing wait
};

class SimError : public std::runtime_error {
 public:
  explicit SimError(Violation violation);
  const Violation& violation() const { return violation_; }

 private:
  Violation violation_;
};

// Malformed assembly, unknown directive or bad launch arguments: the caller's fault, before execution.
class LoadError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace amdsim
