// 32- and 64-bit integer arithmetic, shifts and bit fields.
#include "vop.hpp"

namespace amdsim {

void register_valu_int(Registry& r) {
  r.add(vop<[](u32 a, u32 b) { return a + b; }>("v_add_u32"));
  r.add(vop<[](u32 a, u32 b) { return b << (a & 31); }>("v_lshlrev_b32"));
}

}  // namespace amdsim
