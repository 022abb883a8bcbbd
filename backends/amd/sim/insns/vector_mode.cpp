// s_set_gpr_idx_* and s_setvskip: modes of the vector instructions that follow (CDNA3 ISA, SOP1, SOPC and SOPP).
#include "../core/vector_mode.hpp"
#include "sop.hpp"

namespace amdsim {
namespace {

void set_m0_field(Wave& w, u32 field, u32 value, u32 undefined) {
  w.sgpr[sreg::kM0] = (w.sgpr[sreg::kM0] & ~field) | (value & field);
  w.sundef[sreg::kM0] = (w.sundef[sreg::kM0] & ~field) | (undefined & field);
}

void s_set_gpr_idx_on(Wave& w, const Inst& in) {
  set_m0_field(w, 0xffffffffu, (w.s32(in.src[0]) & 0xff) | u32(in.src[1].value) << 12, u32(w.s_undef(in.src[0])) & 0xff);
  w.vector_mode |= kIndexedVgprs;
}
void s_set_gpr_idx_off(Wave& w, const Inst&) { w.vector_mode &= static_cast<u8>(~kIndexedVgprs); }
void s_set_gpr_idx_idx(Wave& w, const Inst& in) {
  set_m0_field(w, 0xff, w.s32(in.src[0]), u32(w.s_undef(in.src[0])));
}
void s_set_gpr_idx_mode(Wave& w, const Inst& in) { set_m0_field(w, 0xf000, u32(in.src[0].value) << 12, 0); }

void s_setvskip(Wave& w, const Inst& in) {
  if (w.s_undef(in.src[0]) || w.s_undef(in.src[1])) w.violate(Check::Uninit, "VSKIP is set from an undefined value");
  const bool on = w.s32(in.src[0]) >> (w.s32(in.src[1]) & 31) & 1;
  w.vector_mode = static_cast<u8>((w.vector_mode & ~kSkipsVector) | (on ? kSkipsVector : 0));
}

}  // namespace

void register_vector_modes(Registry& r) {
  r.add(sop::make("s_set_gpr_idx_on", s_set_gpr_idx_on, Ty::None, {Ty::B32, Ty::Imm16}));
  r.add(sop::make("s_set_gpr_idx_off", s_set_gpr_idx_off, Ty::None, {}));
  r.add(sop::make("s_set_gpr_idx_idx", s_set_gpr_idx_idx, Ty::None, {Ty::B32}));
  r.add(sop::make("s_set_gpr_idx_mode", s_set_gpr_idx_mode, Ty::None, {Ty::Imm16}));
  r.add(sop::make("s_setvskip", s_setvskip, Ty::None, {Ty::B32, Ty::B32}));
}

}  // namespace amdsim
