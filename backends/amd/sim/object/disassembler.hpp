// Instruction text through LLVM's disassembler C API, from a libLLVM opened at run time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bytes.hpp"

namespace amdsim::object {

/// Where libLLVM is, and the folder of the stand-ins (sysdeps/) for libraries that it names and that may be missing.
struct LlvmLibrary {
  std::string path;
  std::string sysdeps;
};

/// The folder of the shared library that holds `symbol`, links resolved, with `below` appended.
std::string folder_of(const void* symbol, const std::string& below);

struct Instruction {
  std::uint64_t address = 0;
  std::uint32_t size = 0;  // bytes
  std::string text;        // as `clang -S` prints it; ".long 0x..." when the bytes are no instruction
};

class Disassembler {
 public:
  Disassembler(const LlvmLibrary& library, const std::string& processor);
  ~Disassembler();
  Disassembler(Disassembler&&) noexcept;

  std::vector<Instruction> run(Bytes code, std::uint64_t address) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace amdsim::object
