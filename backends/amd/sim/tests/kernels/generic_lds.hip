#include "common.h"
// LDS reached through generic pointers: flat loads, stores and atomics that may hit LDS or global memory.
GLB void WG(128) generic_lds(float* __restrict__ O, float* G, const float* __restrict__ X, const int* __restrict__ where) {
  SHM float s[128];
  int t = tid(), i = bid() * 128 + t;
  s[t] = X[i] * 2.f;
  G[i] = X[i] * 3.f;
  sync();
  int w = where[i];
  float* p = w & 1 ? &s[(t + 17) & 127] : &G[bid() * 128 + ((t + 5) & 127)];
  float v = *(volatile float*)p;
  sync();
  float* q = w & 2 ? &s[t] : &G[i];
  *(volatile float*)q = v + 1.f;
  sync();
  O[i] = s[t] + G[i];
}
