#include "common.h"
// Sub-dword conversions (SDWA) and 8-bit floats: bytes and shorts in, all kinds of floats out.
typedef u8 b4 __attribute__((ext_vector_type(4))); typedef signed char c4 __attribute__((ext_vector_type(4)));
GLB void WG(256) sdwa(float* __restrict__ F, u32* __restrict__ U, h2* __restrict__ H, const b4* __restrict__ B,
                      const c4* __restrict__ C, const s2* __restrict__ S, int n) {
  int i = bid() * 256 + tid();
  if (i >= n) return;
  b4 b = B[i]; c4 c = C[i]; s2 s = S[i];
  for (int e = 0; e < 4; e++) F[i * 8 + e] = (float)b[e] * 0.5f + (float)c[e];
  F[i * 8 + 4] = (float)s.x * (float)s.y; F[i * 8 + 5] = (float)(b.x + s.y);
  F[i * 8 + 6] = (float)(u16)(s.x + b.z); F[i * 8 + 7] = (float)(short)(s.y << (b.w & 3));
  U[i] = (u32)(u8)(b.x + b.y) | (u32)(u8)(b.z ^ b.w) << 8 | (u32)(u16)(s.x * s.y) << 16;
  H[i] = (h2){(_Float16)s.x, (_Float16)(float)c.z} * (h2){(_Float16)0.25f, (_Float16)2.0f};
}
GLB void WG(256) fp8(u32* __restrict__ P, float* __restrict__ F, const float* __restrict__ X, int n) {
  int i = bid() * 256 + tid();
  if (i >= n) return;
  int p = __builtin_amdgcn_cvt_pk_fp8_f32(X[i * 4], X[i * 4 + 1], 0, false);
  p = __builtin_amdgcn_cvt_pk_bf8_f32(X[i * 4 + 2], X[i * 4 + 3], p, true);
  P[i] = (u32)p;
  F[i * 4] = __builtin_amdgcn_cvt_f32_fp8(p, 0); F[i * 4 + 1] = __builtin_amdgcn_cvt_f32_fp8(p, 1);
  F[i * 4 + 2] = __builtin_amdgcn_cvt_f32_bf8(p, 2); F[i * 4 + 3] = __builtin_amdgcn_cvt_f32_bf8(p, 3);
}
