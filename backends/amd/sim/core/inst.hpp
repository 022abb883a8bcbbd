// A decoded instruction: operands, modifiers and the function that executes it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "types.hpp"

namespace amdsim {

struct Inst;
struct Wave;

// Rows 0..255 are v0..v255, rows 256..511 are a0..a255.
inline constexpr int kAgprRow = 256;
inline constexpr int kRows = 512;

// Scalar operand codes as in the ISA's SSRC table; 0..127 are storage, the rest read-only specials.
namespace sreg {
inline constexpr u16 kFlatScratch = 102, kXnack = 104, kVcc = 106, kM0 = 124, kExec = 126;
inline constexpr u16 kSharedBase = 235, kSharedLimit = 236, kPrivateBase = 237, kPrivateLimit = 238;
inline constexpr u16 kVccz = 251, kExecz = 252, kScc = 253;
inline constexpr int kCount = 128;
}  // namespace sreg

enum class Kind : u8 { None, Vgpr, Sgpr, Special, Const, Target, Off };

// SDWA selections.
enum class Sel : u8 { Byte0, Byte1, Byte2, Byte3, Word0, Word1, Dword };

struct Operand {
  Kind kind = Kind::None;
  u8 dwords = 1;
  u16 reg = 0;        // row, scalar code, or special code
  bool neg = false;   // -x   (VOP3, SDWA, DPP)
  bool abs = false;   // |x|
  bool sext = false;  // SDWA sext(x)
  Sel sel = Sel::Dword;
  bool is_literal = false;  // written as a number that is not an inline constant
  u64 value = 0;            // Const: bits as the instruction sees them; Target: instruction index
  const u32* lanes = nullptr;  // Const: the value splatted over 64 lanes (low rows, then high rows)

  bool is_vgpr() const { return kind == Kind::Vgpr; }
  bool is_scalar_reg() const { return kind == Kind::Sgpr; }
};

enum class Encoding : u8 { Default, E32, E64, Dpp, Sdwa };

enum class DstUnused : u8 { Pad, Sext, Preserve };

struct Modifiers {
  i32 offset = 0;   // memory offset (DS offset0 of read2/write2)
  i32 offset1 = 0;  // DS offset1
  u16 dpp_ctrl = 0;
  u8 row_mask = 15, bank_mask = 15;
  bool bound_ctrl = false;
  bool clamp = false;
  u8 omod = 0;  // 0 none, 1 *2, 2 *4, 3 /2
  u8 op_sel = 0, op_sel_hi = 0xff, neg_lo = 0, neg_hi = 0;  // bit i = source i; op_sel bit 3 = dst of 3-source ops
  bool has_op_sel = false, has_op_sel_hi = false;
  u8 cbsz = 0, abid = 0, blgp = 0;
  Sel dst_sel = Sel::Dword;
  DstUnused dst_unused = DstUnused::Pad;
  bool sc0 = false, sc1 = false, nt = false, lds = false, offen = false, idxen = false;
  bool scale = false;  // v_mfma_scale_*
  u8 bitop3 = 0;
};

// Contiguous registers that an instruction reads or writes, for the checks.
struct RegRange {
  u16 first = 0;
  u16 count = 0;
  bool overlaps(const RegRange& o) const { return first < o.first + o.count && o.first < first + count; }
};

using ExecFn = void (*)(Wave&, const Inst&);

struct Desc;  // registry.hpp

// Operand slots. dst: vector or scalar destination; sdst: the scalar mask that v_cmp/v_add_co also write.
struct Inst {
  ExecFn exec = nullptr;
  const void* body = nullptr;  // family-specific: LaneFn for VALU, MFMA function, memory operation...
  const Desc* desc = nullptr;
  Operand dst, sdst;
  Operand src[5];
  u8 n_src = 0;
  Encoding encoding = Encoding::Default;
  Modifiers mod;
  i64 imm = 0;  // s_waitcnt, s_nop, s_movk..., hwreg
  // Derived at decode for the checks (see checks/).
  RegRange vread[5];
  RegRange vwrite[2];
  u8 n_vread = 0, n_vwrite = 0;
  RegRange sread[5];
  RegRange swrite[3];
  u8 n_sread = 0, n_swrite = 0;
  bool plain = true;           // no DPP, SDWA, op_sel, neg/abs, clamp or omod
  const i8* dpp_map = nullptr;  // DPP: source lane of each lane, -1 when outside
  u32 flags = 0;   // copied from Desc and refined by operands
  u8 passes = 0;   // MFMA passes on this target
  u8 window = 0;   // as a producer: longest wait any ordinary consumer can need
  bool partial = false;  // as a producer: writes part of a register, which is not forwarded
  // Registers by number modulo 64, one bit each: instructions without a common bit cannot disturb each other.
  u64 v_read_bits = 0, v_write_bits = 0, s_read_bits = 0, s_write_bits = 0;
  bool indirect = false;  // as a producer or consumer: bound by rules that are not about common registers
  bool divides = false, narrows_to_fp4 = false;
  bool wary = false;  // as a consumer: cares about producers that ordinary instructions ignore
  // Of lane-wise instructions (exec_plain): every row that is read, the operands that are rows of lanes, and which of
  // them is the old destination.
  u16 read_rows[8] = {};
  u8 n_read_rows = 0, lane_sources = 0;
  i8 old_dst = -1;
  u64 need = 0;    // packed highest registers used: see Wave::limits
  u32 index = 0;   // position in Program::code
  u64 address = 0;
  int line = 0;    // line of the assembly text
  int loc_file = -1, loc_line = 0;  // index into Program::files
  std::string text;
};

}  // namespace amdsim
