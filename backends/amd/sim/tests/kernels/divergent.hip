#include "common.h"
// Nested divergent loops with break, continue, a switch inside and an early return.
GLB void WG(128) divergent(int* __restrict__ O, const int* __restrict__ X, int n) {
  int i = bid() * 128 + tid();
  if (i >= n) return;
  int x = X[i], acc = 0;
  if (x < -1000) { O[i] = -1; return; }
  for (int a = 0; a < 12; a++) {
    if ((x ^ a) % 5 == 0) continue;
    int b = 0;
    while (b < 20) {
      b += 1 + ((x >> a) & 1);
      if (((x + b) & 7) == 3) break;
      switch ((x + a * b) & 7) {
        case 0: acc += b; break;
        case 1: acc ^= a << 3; break;
        case 2: acc -= x & 15; [[fallthrough]];
        case 3: acc += 3; break;
        case 5: if (acc > 500) goto out; acc *= 2; break;
        case 6: acc += __builtin_popcount(acc); break;
        default: acc ^= b * 7;
      }
    }
    if (acc & 0x100) acc += 11;
  }
out:
  O[i] = acc;
}
