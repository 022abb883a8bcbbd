// Single- and double-precision arithmetic.
#include "vop.hpp"

namespace amdsim {

void register_valu_float(Registry& r) {
  r.add(vop<[](f32 a, f32 b) { return a + b; }>("v_add_f32"));
  r.add(vop<[](f32 a, f32 b) { return a * b; }>("v_mul_f32"));
  r.add(vop_acc<[](f32 a, f32 b, f32 d) { return __builtin_fmaf(a, b, d); }>("v_fmac_f32"));
}

}  // namespace amdsim
