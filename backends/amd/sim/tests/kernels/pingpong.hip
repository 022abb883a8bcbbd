#include "common.h"
// Two halves of a workgroup in turn: waves 4-7 run one barrier behind waves 0-3 (HipKittens' ping-pong), so
// that a barrier round pairs different places of the code. Each half loads its half of a tile directly into
// LDS and reads all of it, one phase later than the other half; three buffers.
typedef __attribute__((address_space(3))) void* lds_ptr;
typedef __attribute__((address_space(1))) void* glb_ptr;
DEV void barrier() { __builtin_amdgcn_sched_barrier(0); __builtin_amdgcn_s_barrier(); __builtin_amdgcn_sched_barrier(0); }
GLB void WG(512) pingpong(float* __restrict__ O, const float* __restrict__ X, int steps) {
  SHM float s[3][512];
  int t = tid(), w = __builtin_amdgcn_readfirstlane(t >> 6), half = w >> 2;
  float acc = 0;
  auto load = [&](int k) {
    __builtin_amdgcn_global_load_lds((glb_ptr)(X + k * 512 + t), (lds_ptr)(&s[k % 3][w * 64]), 4, 0, 0);
  };
  if (half) barrier();
  load(0);
  __builtin_amdgcn_s_waitcnt(0x0f70);  // vmcnt(0)
  barrier();
  for (int k = 0; k < steps; k++) {
    if (k + 1 < steps) load(k + 1);
    barrier();
    unsigned at = (unsigned)(unsigned long)(lds_ptr)&s[k % 3][(t * 5 + k) & 511];
    float v;
    asm volatile("ds_read_b32 %0, %1\n\ts_waitcnt lgkmcnt(0)" : "=v"(v) : "v"(at) : "memory");
    acc += v;
    __builtin_amdgcn_s_waitcnt(0x0f70);
    barrier();
  }
  if (!half) barrier();
  O[bid() * 512 + t] = acc;
}
