#include "common.h"
// Y = layernorm(X) * gamma + beta, one wavefront per row, sums by DPP, D = 64 * 8.
GLB void WG(256) layernorm(__bf16* __restrict__ Y, float* __restrict__ stats, const __bf16* __restrict__ X,
                           const float* __restrict__ gamma, const float* __restrict__ beta, int rows, float eps) {
  int row = bid() * 4 + (tid() >> 6), l = tid() & 63;
  if (row >= rows) return;
  bf8 x = *(const bf8*)(X + (long)row * 512 + l * 8);
  float sum = 0, squares = 0;
  for (int e = 0; e < 8; e++) sum += (float)x[e];
  float mean = wave_sum_dpp(sum) * (1.f / 512);
  for (int e = 0; e < 8; e++) { float d = (float)x[e] - mean; squares += d * d; }
  float inv = __builtin_amdgcn_rsqf(wave_sum_dpp(squares) * (1.f / 512) + eps);
  bf8 y;
  for (int e = 0; e < 8; e++) y[e] = (__bf16)(((float)x[e] - mean) * inv * gamma[l * 8 + e] + beta[l * 8 + e]);
  *(bf8*)(Y + (long)row * 512 + l * 8) = y;
  if (l == 0) { stats[row * 2] = mean; stats[row * 2 + 1] = inv; }
}
