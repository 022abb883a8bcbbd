// A loaded module: decoded code, kernels and constant data. Immutable after load, shared by launches.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "asm_text.hpp"
#include "inst.hpp"
#include "target.hpp"

namespace amdsim {

// The fields of the 64-byte kernel descriptor that execution depends on (LLVM AMDGPUUsage, "Kernel Descriptor").
struct Kernel {
  std::string name;
  u32 entry = 0;  // index into Program::code
  u32 group_segment = 0, private_segment = 0, kernarg_size = 0;
  u32 user_sgprs = 2;
  bool dispatch_ptr = false, queue_ptr = false, kernarg_ptr = true, dispatch_id = false, private_size = false;
  u32 preload_length = 0, preload_offset = 0;
  bool id_x = true, id_y = false, id_z = false, group_info = false;
  u32 workitem_dims = 0;
  bool scratch_enabled = false;
  bool dynamic_stack = false;
  u32 vgprs = 0, agprs = 0, sgprs = 0, accum_offset = 0;  // allocated, after rounding to granules
  u8 round32 = 0, round64 = 0, denorm32 = 3, denorm64 = 3;
  bool dx10_clamp = true, ieee = true, fp16_ovfl = false;
};

struct Program {
  const Target* target = nullptr;
  std::vector<Inst> code;
  std::vector<std::string> files;
  std::map<std::string, Kernel> kernels;
  std::unordered_map<std::string, u32> labels;
  std::unordered_map<u64, u32> by_address;
  std::vector<DataSection> sections;
  std::unordered_map<std::string, DataSymbol> data_symbols;
  std::vector<u64> section_base;  // virtual addresses
  std::string metadata;
  std::deque<std::vector<u32>> pool;  // splatted constants

  static std::unique_ptr<Program> from_text(std::string_view text, std::string_view target);

  u32 index_of_address(u64 address) const;  // throws LoadError when it is not an instruction
  std::string source_of(const Inst& inst) const;
  u64 symbol_address(const std::string& name) const;
};

// Virtual address map. Buffers get one or more slots of 4 GiB each from kFirstSlot up; see memory.hpp.
inline constexpr u64 kCodeBase = 0x0000'0001'0000'0000ull;
inline constexpr u64 kDataBase = 0x0000'0002'0001'0000ull;  // + section << 32
inline constexpr u64 kSharedAperture = 0x0001'0000'0000'0000ull;
inline constexpr u64 kPrivateAperture = 0x0002'0000'0000'0000ull;

}  // namespace amdsim
