// The table of known mnemonics. One Desc per mnemonic without its encoding suffix (_e32, _e64, _dpp, _sdwa).
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inst.hpp"

namespace amdsim {

// Operand types: width in dwords, and how a constant and the neg/abs modifiers are to be understood.
enum class Ty : u8 {
  None, B16, F16, BF16, B32, F32, I32, PkF16, PkB16, PkBF16,
  B64, F64, I64, PkF32,           // two dwords
  B96, B128, B192, B256, B512, B1024,
  Mask,                            // 64-bit lane mask in an SGPR pair (vcc unless named)
  Any,                             // width taken from the written operand
  Label, Imm16, Waitcnt, Hwreg, Off
};
int ty_dwords(Ty type);

enum Flag : u32 {
  kValu = 1u << 0,
  kSalu = 1u << 1,
  kSmem = 1u << 2,
  kVmem = 1u << 3,      // global, buffer, scratch, flat
  kDs = 1u << 4,
  kMfma = 1u << 5,      // MFMA and SMFMAC
  kBranch = 1u << 6,
  kTrans = 1u << 7,     // quarter-rate function: 1 wait state before a non-trans use
  kDot = 1u << 8,
  kXdl = 1u << 9,       // MFMA except f32-input and f64
  kDgemm = 1u << 10,
  kReadsDst = 1u << 11,  // the old destination is a source (v_fmac, v_dot4c, partial writes)
  kWritesExec = 1u << 12,
  kPartial = 1u << 13,   // writes less than the whole dword
  kLaneSelect = 1u << 14,  // v_readlane / v_writelane
  kFirstLane = 1u << 15,
  kStore = 1u << 16,
  kLoad = 1u << 17,
  kAtomic = 1u << 18,
  kFlat = 1u << 19,
  kScratch = 1u << 20,
  kBuffer = 1u << 21,
  kLdsDma = 1u << 22,
  kVcmp = 1u << 23,      // the scalar destination comes first and is the result
  kCarryOut = 1u << 24,
  kMaskIn = 1u << 25,    // last source is a lane mask: v_cndmask, v_addc_co, v_div_fmas
  kPermSwap = 1u << 26,
  kReadsM0 = 1u << 27,
  kVcmpx = 1u << 28,
  kIgnoresExec = 1u << 29,
  kTerminator = 1u << 30,
  kCrossLane = 1u << 31,  // a lane of the result depends on other lanes' sources
};

// How undefinedness passes through: see insns/README section in README.md.
using ShadowFn = void (*)(Wave&, const Inst&);

enum Targets : u8 { kGfx942 = 1, kGfx950 = 2, kBothTargets = 3 };

struct Desc {
  const char* name = "";
  ExecFn exec = nullptr;
  const void* body = nullptr;
  Ty dst = Ty::None;
  Ty sdst = Ty::None;
  Ty src[5] = {Ty::None, Ty::None, Ty::None, Ty::None, Ty::None};
  u8 n_src = 0;
  u32 flags = 0;
  ShadowFn shadow = nullptr;  // nullptr: lane-wise default
  u8 targets = kBothTargets;
  u8 passes[2] = {0, 0};      // MFMA passes on gfx942, gfx950
  u32 aux = 0;                // family-specific number, e.g. bytes of a memory access
};

// aux of f8f6f4 MFMA: half the passes when neither operand is 8-bit (CDNA4 ISA table 28).
inline constexpr u32 kHalvesForSmallFormats = 1;

class Registry {
 public:
  static const Registry& instance();
  const Desc* find(std::string_view name) const;
  void add(Desc desc);  // throws std::logic_error on a duplicate
  std::vector<std::string> names() const;

 private:
  Registry();
  std::unordered_map<std::string, Desc> table_;
};

// One registration function per family file in insns/, listed in registry.cpp.
void register_control(Registry&);
void register_salu(Registry&);
void register_sopk(Registry&);
void register_smem(Registry&);
void register_valu_int(Registry&);
void register_valu_int16(Registry&);
void register_valu_bits(Registry&);
void register_valu_float(Registry&);
void register_valu_functions(Registry&);
void register_valu_half(Registry&);
void register_vector_modes(Registry&);
void register_valu_cmp(Registry&);
void register_valu_cvt(Registry&);
void register_valu_cvt_small(Registry&);
void register_valu_packed(Registry&);
void register_valu_dot(Registry&);
void register_valu_move(Registry&);   // mov, cndmask, readlane, writelane, permlane, accvgpr, mbcnt
void register_mfma(Registry&);
void register_ds(Registry&);
void register_global(Registry&);
void register_buffer(Registry&);
void register_scratch(Registry&);

}  // namespace amdsim
