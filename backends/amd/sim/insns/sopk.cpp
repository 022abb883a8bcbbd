// Scalar instructions with a 16-bit immediate, program counter moves, and hardware registers (SOPK, SOP1).
#include "../core/program.hpp"
#include "../core/workgroup.hpp"
#include "sop.hpp"

namespace amdsim {
namespace {

using namespace sop;

i32 simm(const Inst& in) { return i16(in.imm); }

void s_movk_i32(Wave& w, const Inst& in) { write(w, in.dst, u32(simm(in)), 0, 1); }

void s_cmovk_i32(Wave& w, const Inst& in) {
  if (w.scc_undef) w.violate(Check::Uninit, "the condition SCC is undefined");
  if (w.scc) write(w, in.dst, u32(simm(in)), 0, 1);
}

void s_addk_i32(Wave& w, const Inst& in) {
  const i32 a = i32(w.s32(in.dst)), b = simm(in);
  const u64 undefined = w.s_undef(in.dst) ? ~0ull : 0;
  w.scc = i64(a) + b != i64(i32(u32(a) + u32(b))), w.scc_undef = undefined;
  write(w, in.dst, u32(a) + u32(b), undefined, 1);
}

void s_mulk_i32(Wave& w, const Inst& in) {
  write(w, in.dst, w.s32(in.dst) * u32(simm(in)), w.s_undef(in.dst) ? ~0ull : 0, 1);
}

template <class T, auto F>
void s_cmpk(Wave& w, const Inst& in) {
  const T constant = std::is_signed_v<T> ? T(simm(in)) : T(u16(in.imm));
  w.scc = F(T(w.s32(in.src[0])), constant);
  w.scc_undef = w.s_undef(in.src[0]) != 0;
}

u64 code_address(const Wave& w, u32 index) {
  const auto& code = w.program->code;
  return index < code.size() ? code[index].address : code.back().address + 8;
}

void go_to(Wave& w, u64 address) {
  try {
    w.next_pc = w.program->index_of_address(address);
  } catch (const LoadError&) {
    w.unsupported("jump to an address that holds no instruction");
  }
}

void s_getpc_b64(Wave& w, const Inst& in) { write(w, in.dst, code_address(w, w.next_pc), 0, 2); }

void require_target(const Wave& w, const Operand& op) {
  if (w.s_undef(op)) w.violate(Check::Uninit, "the target of a jump is undefined");
}

void s_setpc_b64(Wave& w, const Inst& in) {
  require_target(w, in.src[0]);
  go_to(w, w.s64(in.src[0]));
}

void s_swappc_b64(Wave& w, const Inst& in) {
  require_target(w, in.src[0]);
  const u64 target = w.s64(in.src[0]), back = code_address(w, w.next_pc);
  write(w, in.dst, back, 0, 2);
  go_to(w, target);
}

// dst = address of the next instruction; jump by simm16 dwords.
void s_call_b64(Wave& w, const Inst& in) {
  write(w, in.dst, code_address(w, w.next_pc), 0, 2);
  w.next_pc = static_cast<u32>(in.src[0].value);
}

u32 mode_bits(const Mode& m) {
  return u32(m.round32) | u32(m.round64) << 2 | u32(m.denorm32) << 4 | u32(m.denorm64) << 6 | u32(m.dx10_clamp) << 8 |
         u32(m.ieee) << 9 | u32(m.fp16_ovfl) << 23;
}

void set_mode(Mode& m, u32 b) {
  m = {u8(b & 3), u8(b >> 2 & 3), u8(b >> 4 & 3), u8(b >> 6 & 3), bool(b >> 8 & 1), bool(b >> 9 & 1), bool(b >> 23 & 1)};
}

enum HwReg { kMode = 1, kStatus = 2, kHwId = 4, kGprAlloc = 5, kLdsAlloc = 6, kXccId = 20 };

u32 hardware_register(const Wave& w, int id) {
  switch (id) {
    case kMode: return mode_bits(w.mode);
    case kStatus: return u32(w.scc) | u32(w.exec() == 0) << 9 | u32(w.vcc() == 0) << 10;
    case kHwId: return (u32(w.id) / 4 & 15) | (u32(w.id) & 3) << 4;
    case kGprAlloc: return u32(w.limits & 0xffff) / 8;
    case kLdsAlloc: return u32(w.group->lds.size() / 512) << 12;
    case kXccId: return u32(w.group->linear_id % 8);  // workgroups go round-robin over the XCDs
    default: w.unsupported("hardware register " + std::to_string(id));
  }
}

struct Field {
  int id, offset, size;
  explicit Field(i64 imm) : id(imm & 63), offset(imm >> 6 & 31), size((imm >> 11 & 31) + 1) {}
  u32 mask() const { return size == 32 ? ~0u : (1u << size) - 1; }
};

void s_getreg_b32(Wave& w, const Inst& in) {
  const Field f(in.imm);
  write(w, in.dst, hardware_register(w, f.id) >> f.offset & f.mask(), 0, 1);
}

void set_register(Wave& w, const Field& f, u32 value) {
  if (f.id != kMode) w.unsupported("s_setreg of hardware register " + std::to_string(f.id));
  const u32 mask = f.mask() << f.offset;
  set_mode(w.mode, (mode_bits(w.mode) & ~mask) | (value << f.offset & mask));
}

void s_setreg_b32(Wave& w, const Inst& in) {
  if (w.s_undef(in.src[1])) w.violate(Check::Uninit, "MODE is set from an undefined value");
  set_register(w, Field(in.imm), w.s32(in.src[1]));
}

void s_setreg_imm32_b32(Wave& w, const Inst& in) { set_register(w, Field(in.imm), u32(in.src[1].value)); }

void register_cmpk(Registry& r) {
  auto add = [&](const char* name, ExecFn exec) { r.add(make(name, exec, Ty::None, {Ty::B32, Ty::Imm16})); };
  add("s_cmpk_eq_u32", s_cmpk<u32, [](u32 a, u32 b) { return a == b; }>);
  add("s_cmpk_lg_u32", s_cmpk<u32, [](u32 a, u32 b) { return a != b; }>);
  add("s_cmpk_gt_u32", s_cmpk<u32, [](u32 a, u32 b) { return b < a; }>);
  add("s_cmpk_ge_u32", s_cmpk<u32, [](u32 a, u32 b) { return a >= b; }>);
  add("s_cmpk_lt_u32", s_cmpk<u32, [](u32 a, u32 b) { return a < b; }>);
  add("s_cmpk_le_u32", s_cmpk<u32, [](u32 a, u32 b) { return a <= b; }>);
  add("s_cmpk_eq_i32", s_cmpk<i32, [](i32 a, i32 b) { return a == b; }>);
  add("s_cmpk_lg_i32", s_cmpk<i32, [](i32 a, i32 b) { return a != b; }>);
  add("s_cmpk_gt_i32", s_cmpk<i32, [](i32 a, i32 b) { return b < a; }>);
  add("s_cmpk_ge_i32", s_cmpk<i32, [](i32 a, i32 b) { return a >= b; }>);
  add("s_cmpk_lt_i32", s_cmpk<i32, [](i32 a, i32 b) { return a < b; }>);
  add("s_cmpk_le_i32", s_cmpk<i32, [](i32 a, i32 b) { return a <= b; }>);
}

}  // namespace

void register_sopk(Registry& r) {
  r.add(make("s_movk_i32", s_movk_i32, Ty::B32, {Ty::Imm16}));
  r.add(make("s_cmovk_i32", s_cmovk_i32, Ty::B32, {Ty::Imm16}, kReadsDst));
  r.add(make("s_addk_i32", s_addk_i32, Ty::B32, {Ty::Imm16}, kReadsDst));
  r.add(make("s_mulk_i32", s_mulk_i32, Ty::B32, {Ty::Imm16}, kReadsDst));
  register_cmpk(r);
  r.add(make("s_getpc_b64", s_getpc_b64, Ty::B64, {}));
  r.add(make("s_setpc_b64", s_setpc_b64, Ty::None, {Ty::B64}, kBranch));
  r.add(make("s_swappc_b64", s_swappc_b64, Ty::B64, {Ty::B64}, kBranch));
  r.add(make("s_call_b64", s_call_b64, Ty::B64, {Ty::Label}, kBranch));
  r.add(make("s_getreg_b32", s_getreg_b32, Ty::B32, {Ty::Hwreg}));
  r.add(make("s_setreg_b32", s_setreg_b32, Ty::None, {Ty::Hwreg, Ty::B32}));
  r.add(make("s_setreg_imm32_b32", s_setreg_imm32_b32, Ty::None, {Ty::Hwreg, Ty::B32}));
}

}  // namespace amdsim
