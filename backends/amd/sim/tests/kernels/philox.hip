#include "common.h"
// Philox4x32-10 (Salmon et al., SC'11) and dropout with it: keep where the number is below the threshold.
DEV uu4 philox(uu4 c, u32 k0, u32 k1) {
  for (int r = 0; r < 10; r++) {
    u64 a = (u64)0xD2511F53u * c.x, b = (u64)0xCD9E8D57u * c.z;
    c = (uu4){(u32)(b >> 32) ^ c.y ^ k0, (u32)b, (u32)(a >> 32) ^ c.w ^ k1, (u32)a};
    k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
  }
  return c;
}
GLB void WG(256) philox_raw(uu4* __restrict__ O, u32 seed_lo, u32 seed_hi, int n) {
  int i = bid() * 256 + tid();
  if (i < n) O[i] = philox((uu4){(u32)i, 0, 0, 0}, seed_lo, seed_hi);
}
GLB void WG(256) dropout(float* __restrict__ O, const float* __restrict__ X, u32 seed, u32 threshold, float scale, int n) {
  int i = bid() * 256 + tid();
  if (i * 4 >= n) return;
  uu4 r = philox((uu4){(u32)i, 7, 0, 0}, seed, 0);
  for (int e = 0; e < 4; e++) if (i * 4 + e < n) O[i * 4 + e] = r[e] < threshold ? X[i * 4 + e] * scale : 0.f;
}
