#include "common.h"
// A 64x64 f32 transpose through padded LDS with 16-byte accesses, and f64 arithmetic.
GLB void WG(256) transpose(float* __restrict__ O, const float* __restrict__ X, int n) {
  SHM float s[64][68];
  int t = tid(), r = t >> 4, c = (t & 15) * 4, bx = bid() * 64, by = bidy() * 64;
  for (int i = 0; i < 4; i++) *(f4*)&s[r + i * 16][c] = *(const f4*)(X + (long)(by + r + i * 16) * n + bx + c);
  sync();
  for (int i = 0; i < 4; i++) {
    int row = r + i * 16;
    f4 v = {s[c][row], s[c + 1][row], s[c + 2][row], s[c + 3][row]};
    *(f4*)(O + (long)(bx + row) * n + by + c) = v;
  }
}
GLB void WG(64) doubles(double* __restrict__ O, const double* __restrict__ X, const double* __restrict__ Y, int n) {
  int i = bid() * 64 + tid();
  if (i >= n) return;
  double x = X[i], y = Y[i];
  O[i * 4] = x / y; O[i * 4 + 1] = __builtin_sqrt(__builtin_fabs(x)); O[i * 4 + 2] = __builtin_fma(x, y, __builtin_floor(x));
  O[i * 4 + 3] = (double)(int)x + (double)(float)y + __builtin_fmax(x, y);
}
