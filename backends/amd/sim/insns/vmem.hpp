// Shared by the vector memory families: what is moved, and moving it between registers and memory.
#pragma once

#include "../core/global.hpp"
#include "../core/lds.hpp"
#include "../core/program.hpp"
#include "../core/registry.hpp"

namespace amdsim {

// Width and conversion of a load or store, kept in Desc::aux.
struct MemType {
  u8 bytes = 4;
  bool sign = false;
  u8 half = 0;  // 1: low half (d16), 2: high half (d16_hi)
  u32 pack() const { return bytes | u32(sign) << 8 | u32(half) << 9; }
  static MemType of(const Inst& in) { return unpack(in.desc->aux); }
  static MemType unpack(u32 aux) { return {u8(aux), bool(aux >> 8 & 1), u8(aux >> 9 & 3)}; }
  int dwords() const { return (bytes + 3) / 4; }
  u32 align() const { return bytes < 4 ? bytes : 4u; }
};

struct MemForm {
  const char* suffix;  // after "global_load_", "buffer_store_" ...
  MemType type;
};
extern const MemForm kLoadForms[14];
extern const MemForm kStoreForms[8];
Ty data_type(int dwords);
const char* keep_name(std::string name);

// Lanes' addresses in global memory.
void read_global(Wave& w, const Inst& in, GlobalAccess& a, LoadResult& result);
void write_global(Wave& w, const Inst& in, GlobalAccess& a, const Operand& data, MemType type);
void land_vm(Wave& w, const Inst& in, LoadResult& result, MemType type, Path path, u64 seq);

// Scratch: byte offsets within a lane's private segment.
void read_scratch(Wave& w, const Inst& in, const u32* offset, u64 lanes, MemType type, LoadResult& result);
void write_scratch(Wave& w, const Inst& in, const u32* offset, u64 lanes, const Operand& data, MemType type);

// Byte `b` of lane `l` in consecutive rows from `reg`.
inline u8 row_byte(const Wave& w, int reg, int l, u32 b) { return u8(w.v[reg + b / 4][l] >> (8 * (b % 4))); }
inline bool row_byte_undefined(const Wave& w, int reg, int l, u32 b) { return w.vundef[reg + b / 4].b[b % 4] >> l & 1; }

// A store of undefined bytes to global memory ends here.
void require_defined_data(const Wave& w, const Operand& data, MemType type, u64 lanes);
void require_defined_scalar(const Wave& w, const Operand& op, const char* what);

// Loads and stores at agent or system scope take part in the ordering between workgroups.
inline bool device_scope(const Inst& in) { return in.mod.sc1; }

// Direct global-to-LDS: lane addresses are given; lanes in `zero` read as 0 (out of a descriptor's range).
void load_to_lds(Wave& w, const Inst& in, GlobalAccess& a, u64 zero);
void land_lds_dma(Wave& w);

void register_global_atomics(Registry& r);

}  // namespace amdsim
