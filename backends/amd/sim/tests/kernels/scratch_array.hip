#include "common.h"
// A private array too large for registers, indexed by data: a stack machine and a bubble pass.
GLB void WG(64) scratch_array(int* __restrict__ O, const int* __restrict__ X, int n) {
  int a[200];
  int t = bid() * 64 + tid();
  for (int i = 0; i < 200; i++) a[i] = X[(t * 7 + i) & 1023];
  for (int r = 0; r < n; r++)
    for (int i = 0; i + 1 < 200; i++) {
      if (a[i] > a[i + 1]) { int tmp = a[i]; a[i] = a[i + 1]; a[i + 1] = tmp; }
      a[(a[i] & 0x7fffffff) % 200] ^= r;
    }
  u64 h = 1469598103934665603ul;
  for (int i = 0; i < 200; i++) h = (h ^ (u32)a[i]) * 1099511628211ul;
  O[t] = (int)(h >> 32) ^ (int)h;
}
GLB void WG(64) scratch_bytes(u8* __restrict__ O, const u8* __restrict__ X) {
  u8 a[256]; u16 b[256];
  int t = bid() * 64 + tid();
  for (int i = 0; i < 256; i++) { a[i] = X[(t + i * 3) & 511]; b[i] = (u16)(a[i] * 257 + t); }
  u32 k = t & 255, s = 0;
  for (int i = 0; i < 64; i++) { k = (a[k] + b[(k * 5) & 255] + i) & 255; s = s * 33 + a[k]; a[(k + 1) & 255] = (u8)s; }
  O[t] = (u8)(s + b[k] + a[(k + 1) & 255]);
}
