#include "common.h"
// Global and LDS atomics of every width: results do not depend on the order of the waves.
typedef AS1 bf2* gbf2; typedef AS1 h2* gh2; typedef AS1 float* gfloat; typedef AS3 float* lfloat;
typedef short sv2 __attribute__((ext_vector_type(2)));
GLB void WG(256) atomics_packed(bf2* __restrict__ B, h2* __restrict__ H, int bins) {
  int i = bid() * 256 + tid();
  bf2 one = {(__bf16)1.0f, (__bf16)0.5f};
  __builtin_amdgcn_global_atomic_fadd_v2bf16((AS1 sv2*)(B + i % bins), __builtin_bit_cast(sv2, one));
  __builtin_amdgcn_global_atomic_fadd_v2f16((gh2)(H + i % bins), (h2){(_Float16)0.25f, (_Float16)-1.0f});
}
GLB void WG(256) atomics_global(float* __restrict__ F, double* __restrict__ D, u32* __restrict__ U, u64* __restrict__ W,
                                int* __restrict__ S, const int* __restrict__ X, int bins) {
  int i = bid() * 256 + tid(), x = X[i], k = i % bins;
  __builtin_amdgcn_global_atomic_fadd_f32((gfloat)(F + k), (float)x);
  __builtin_amdgcn_global_atomic_fadd_f64((AS1 double*)(D + k), (double)x);
  __hip_atomic_fetch_add(U + k, (u32)x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_add(W + k, (u64)(long)x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_max(S + k * 4, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_min(S + k * 4 + 1, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_xor(S + k * 4 + 2, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  int old = __hip_atomic_load(S + k * 4 + 3, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  while (!__hip_atomic_compare_exchange_strong(S + k * 4 + 3, &old, old * 1 + (x & 15), __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                               __HIP_MEMORY_SCOPE_AGENT)) {}
}
GLB void WG(256) atomics_lds(u32* __restrict__ hist, float* __restrict__ total, int* __restrict__ old, const u32* __restrict__ X) {
  SHM u32 bins[64]; SHM float sum; SHM u64 wide;
  int t = tid(), i = bid() * 256 + t;
  if (t < 64) bins[t] = 0;
  if (t == 64) { sum = 0; wide = 0; }
  sync();
  u32 x = X[i];
  __hip_atomic_fetch_add(bins + (x & 63), 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  __hip_atomic_fetch_add(&sum, (float)(x & 7), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  old[i] = (int)__hip_atomic_fetch_add(&wide, 1ul, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  sync();
  if (t < 64) __hip_atomic_fetch_add(hist + t, bins[t], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  if (t == 0) total[bid()] = sum + (float)wide;
}
