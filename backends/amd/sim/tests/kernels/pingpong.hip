#include "common.h"
// Two halves of a workgroup in turn: waves 4-7 run one barrier behind waves 0-3 (HipKittens' ping-pong), so
// that barrier rounds pair different places of the code. Each half fills, by direct loads, the buffer that
// the other half reads next.
typedef __attribute__((address_space(3))) void* lds_ptr;
typedef __attribute__((address_space(1))) void* glb_ptr;
GLB void WG(512) pingpong(float* __restrict__ O, const float* __restrict__ X, int steps) {
  SHM float s[2][2][256];
  int t = tid(), half = __builtin_amdgcn_readfirstlane(t >> 8), lt = t & 255, w = __builtin_amdgcn_readfirstlane((t >> 6) & 3);
  float acc = 0;
  auto load = [&](int k) {
    __builtin_amdgcn_global_load_lds((glb_ptr)(X + (k * 2 + half) * 256 + lt), (lds_ptr)(&s[half][k & 1][w * 64]), 4, 0, 0);
  };
  if (half) __builtin_amdgcn_s_barrier();
  load(0);
  for (int k = 0; k < steps; k++) {
    __builtin_amdgcn_s_waitcnt(0x0f70);  // vmcnt(0)
    __builtin_amdgcn_s_barrier();        // A: own half's buffer k is complete
    __builtin_amdgcn_sched_barrier(0);
    if (k + 1 < steps) load(k + 1);
    acc += s[half][k & 1][(lt * 5 + k) & 255];
    __builtin_amdgcn_s_waitcnt(0xc07f);  // lgkmcnt(0)
    __builtin_amdgcn_s_barrier();        // B: reads of buffer k are done
    __builtin_amdgcn_sched_barrier(0);
  }
  if (!half) __builtin_amdgcn_s_barrier();
  O[bid() * 512 + t] = acc;
}
