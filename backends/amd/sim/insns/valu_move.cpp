// Moves, selections and scalar-vector transfers.
#include "vop.hpp"

namespace amdsim {
namespace {

void v_cndmask_b32(LaneArgs& io) {
  for (int l = 0; l < kLanes; ++l) io.d[l] = io.mask_in >> l & 1 ? io.b[l] : io.a[l];
}

// Lane 0 when no lane is active (ISA, V_READFIRSTLANE_B32).
void v_readfirstlane_b32(Wave& w, const Inst& in) {
  const int lane = w.exec() ? std::countr_zero(w.exec()) : 0;
  const u16 row = in.src[0].reg;
  w.sgpr[in.dst.reg] = w.v[row][lane];
  u32 undefined = 0;
  for (int byte = 0; byte < 4; ++byte)
    if (w.vundef[row].b[byte] >> lane & 1) undefined |= 0xffu << 8 * byte;
  w.sundef[in.dst.reg] = undefined;
}

Desc lane_op(const char* name, ExecFn exec, u32 flags) {
  Desc d;
  d.name = name, d.exec = exec, d.dst = Ty::B32, d.n_src = 1, d.src[0] = Ty::B32, d.flags = kValu | flags;
  return d;
}

}  // namespace

void register_valu_move(Registry& r) {
  r.add(vop<[](u32 a) { return a; }>("v_mov_b32"));
  r.add(vop<[](u64 a) { return a; }>("v_mov_b64"));
  r.add(vop_raw("v_cndmask_b32", v_cndmask_b32, Ty::B32, {Ty::B32, Ty::B32, Ty::Mask}, kMaskIn));
  r.add(lane_op("v_readfirstlane_b32", v_readfirstlane_b32, kFirstLane));
}

}  // namespace amdsim
