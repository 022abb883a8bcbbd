#include "common.h"
// C[16*gy, 16*gx] (f32) = A * B^T with 8-bit floats, one wavefront per 16x16 tile.
GLB void WG(64) gemm_fp8(float* __restrict__ C, const u8* __restrict__ A, const u8* __restrict__ B, int K, int N) {
  int l = tid(), p = l & 15, g = l >> 4, bm = bidy() * 16, bn = bid() * 16;
  f4 acc = {};
  for (int k = 0; k < K; k += 32) {
    long a = *(const long*)(A + (long)(bm + p) * K + k + g * 8), b = *(const long*)(B + (long)(bn + p) * K + k + g * 8);
    acc = __builtin_amdgcn_mfma_f32_16x16x32_fp8_bf8(a, b, acc, 0, 0, 0);
  }
  for (int r = 0; r < 4; r++) C[(long)(bm + g * 4 + r) * N + bn + p] = acc[r];
}
#if defined(__gfx950__)
// MX formats: a block of 32 values along K shares an E8M0 scale; A is fp8 e4m3, B is fp4 (two a byte).
GLB void WG(64) gemm_mx(float* __restrict__ C, const u8* __restrict__ A, const u8* __restrict__ B, const u8* __restrict__ SA,
                        const u8* __restrict__ SB, int K, int N) {
  int l = tid(), p = l & 15, g = l >> 4, bm = bidy() * 16, bn = bid() * 16;
  f4 acc = {};
  for (int k = 0; k < K; k += 128) {
    const uu4* pa = (const uu4*)(A + (long)(bm + p) * K + k);
    uu4 a0 = pa[g], a1 = pa[4 + g], b = *(const uu4*)(B + ((long)(bn + p) * K + k) / 2 + g * 16);
    i8v a = {(int)a0.x, (int)a0.y, (int)a0.z, (int)a0.w, (int)a1.x, (int)a1.y, (int)a1.z, (int)a1.w};
    i8v bb = {(int)b.x, (int)b.y, (int)b.z, (int)b.w, 0, 0, 0, 0};
    int sa = SA[(long)(bm + p) * (K / 32) + k / 32 + g], sb = SB[(long)(bn + p) * (K / 32) + k / 32 + g] << 8;
    acc = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a, bb, acc, 0, 4, 0, sa, 1, sb);
  }
  for (int r = 0; r < 4; r++) C[(long)(bm + g * 4 + r) * N + bn + p] = acc[r];
}
#endif
