// The instructions of the special function unit, each alone (errors: exhaustive on the H200, see docs/kittens.md).
#pragma once
#include "ptx/base.cuh"

namespace ww {

#define WW_APPROXIMATE(name, instruction) \
  DEVICE float name(float x) { \
    float y; \
    asm(instruction ".f32 %0, %1;" : "=f"(y) : "f"(x)); \
    return y; \
  }
WW_APPROXIMATE(ex2, "ex2.approx.ftz")      // 2.06 ulp; 0 instead of a subnormal result
WW_APPROXIMATE(rsqrt_approx, "rsqrt.approx")  // 1.51 ulp
WW_APPROXIMATE(rcp_approx, "rcp.approx")      // 1 ulp
#undef WW_APPROXIMATE

}  // namespace ww
