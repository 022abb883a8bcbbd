#include "common.h"
// 64-bit multiply, divide, shift and compare; 32-bit divisions by a run-time number.
GLB void WG(256) int64(long* __restrict__ Q, u64* __restrict__ R, int* __restrict__ S, const long* __restrict__ X,
                       const long* __restrict__ Y, int n) {
  int i = bid() * 256 + tid();
  if (i >= n) return;
  long x = X[i], y = Y[i];
  Q[i * 4] = x / y; Q[i * 4 + 1] = x % y; Q[i * 4 + 2] = x * y; Q[i * 4 + 3] = (x >> (y & 63)) + (x < y ? 1 : 0);
  u64 a = (u64)x, b = (u64)y;
  R[i * 3] = a / b; R[i * 3 + 1] = a % b; R[i * 3 + 2] = (u64)(((unsigned __int128)a * b) >> 64);
  int s = (int)x, d = (int)y | 1;
  S[i * 4] = s / d; S[i * 4 + 1] = s % d; S[i * 4 + 2] = (int)((u32)s / (u32)d); S[i * 4 + 3] = (int)((u32)s % (u32)d);
}
