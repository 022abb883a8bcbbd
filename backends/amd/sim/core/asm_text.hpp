// LLVM assembly text of one module, split into statements and data but not yet decoded.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "types.hpp"

namespace amdsim {

struct AsmInst {
  std::string mnemonic;
  std::vector<std::string> operands;
  std::vector<std::string> modifiers;
  std::string text;
  int line = 0;
  int loc_file = -1, loc_line = 0;
  std::optional<u64> address;  // from a disassembler comment "// 000000001900: BF8C0070"
};

struct DataSymbol {
  int section = 0;
  u64 offset = 0;
};

struct Fixup {  // a pointer-sized or 32-bit cell that holds another symbol's address
  u64 offset = 0;
  int bytes = 8;
  std::string symbol;
  i64 addend = 0;
};

struct DataSection {
  std::string name;
  std::vector<u8> bytes;
  std::vector<Fixup> fixups;
  bool writable = false;
};

struct LdsSymbol {
  u64 size = 0;
  u64 align = 1;
};

struct KernelDirectives {
  std::map<std::string, i64> values;  // .amdhsa_* without the prefix
  int line = 0;
};

struct AsmModule {
  std::string target;  // from .amdgcn_target, may be empty
  std::vector<AsmInst> insts;
  std::unordered_map<std::string, u32> labels;  // text label -> index of the next instruction
  std::unordered_map<std::string, DataSymbol> data_symbols;
  std::vector<DataSection> sections;
  std::map<std::string, LdsSymbol> lds;
  std::map<std::string, KernelDirectives> kernels;
  std::vector<std::string> files;
  std::string metadata;  // the YAML between .amdgpu_metadata and .end_amdgpu_metadata
};

AsmModule parse_assembly(std::string_view text);

// Integer expression of the assembler subset that compilers emit: numbers, symbols, + - * ( ), max(), or().
i64 evaluate(std::string_view expression, const std::unordered_map<std::string, i64>& symbols);

}  // namespace amdsim
