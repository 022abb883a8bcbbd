#include "common.h"
// C[M,N] (f32) = A[M,K] * B[K,N], bf16, 64x64 tile, 4 waves of 32x32, K step 32, two LDS buffers filled by
// direct global-to-LDS loads: 16 bytes a lane and transposing reads on gfx950, 4 bytes a lane on gfx942.
#define TILE 64
#define BK 32
typedef __attribute__((address_space(3))) void* lds_ptr;
typedef __attribute__((address_space(1))) void* glb_ptr;
GLB void WG(256) gemm_dma(float* __restrict__ C, const __bf16* __restrict__ A, const __bf16* __restrict__ B,
                          int M, int N, int K) {
  SHM __bf16 sA[2][TILE * BK];
  SHM __bf16 sB[2][BK * TILE];
  int t = tid(), w = t >> 6, l = t & 63, g = l >> 4, p = l & 15;
  int bm = bidy() * TILE, bn = bid() * TILE, wm = (w >> 1) * 32, wn = (w & 1) * 32;
  auto stage = [&](int b, int k0) {
#if defined(__gfx950__)
    int e = t * 8, wave = w * 512;
    __builtin_amdgcn_global_load_lds((glb_ptr)(A + (long)(bm + e / BK) * K + k0 + e % BK), (lds_ptr)(sA[b] + wave), 16, 0, 0);
    __builtin_amdgcn_global_load_lds((glb_ptr)(B + (long)(k0 + e / TILE) * N + bn + e % TILE), (lds_ptr)(sB[b] + wave), 16, 0, 0);
#else
    for (int i = 0; i < 4; i++) {
      int e = i * 512 + t * 2, wave = i * 512 + w * 128;
      __builtin_amdgcn_global_load_lds((glb_ptr)(A + (long)(bm + e / BK) * K + k0 + e % BK), (lds_ptr)(sA[b] + wave), 4, 0, 0);
      __builtin_amdgcn_global_load_lds((glb_ptr)(B + (long)(k0 + e / TILE) * N + bn + e % TILE), (lds_ptr)(sB[b] + wave), 4, 0, 0);
    }
#endif
  };
  f4 acc[2][2] = {};
  stage(0, 0);
  int steps = K / BK;
  for (int s = 0; s < steps; s++) {
    int b = s & 1;
    __builtin_amdgcn_s_waitcnt(0x0f70);  // vmcnt(0): this wave's direct loads have landed
    __builtin_amdgcn_s_barrier();
    if (s + 1 < steps) stage(b ^ 1, (s + 1) * BK);
#if defined(__gfx950__)
    bf8 a[2], bb[2];
    for (int i = 0; i < 2; i++) {
      a[i] = *(bf8*)&sA[b][(wm + i * 16 + p) * BK + g * 8];
      bf4 lo, hi;
      unsigned base = (unsigned)(unsigned long)(lds_ptr)&sB[b][(8 * g + (p >> 2)) * TILE + wn + i * 16 + (p & 3) * 4];
      asm volatile("ds_read_b64_tr_b16 %0, %2\n\tds_read_b64_tr_b16 %1, %2 offset:512\n\ts_waitcnt lgkmcnt(0)"
                   : "=&v"(lo), "=&v"(hi) : "v"(base) : "memory");
      bb[i] = __builtin_shufflevector(lo, hi, 0, 1, 2, 3, 4, 5, 6, 7);
    }
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 2; j++) acc[i][j] = __builtin_amdgcn_mfma_f32_16x16x32_bf16(a[i], bb[j], acc[i][j], 0, 0, 0);
#else
    for (int kk = 0; kk < BK; kk += 16) {
      s4 a[2], bb[2];
      for (int i = 0; i < 2; i++) {
        a[i] = *(s4*)&sA[b][(wm + i * 16 + p) * BK + kk + g * 4];
        for (int e = 0; e < 4; e++) bb[i][e] = ((short*)sB[b])[(kk + g * 4 + e) * TILE + wn + i * 16 + p];
      }
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) acc[i][j] = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a[i], bb[j], acc[i][j], 0, 0, 0);
    }
#endif
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      for (int r = 0; r < 4; r++) C[(long)(bm + wm + i * 16 + g * 4 + r) * N + bn + wn + j * 16 + p] = acc[i][j][r];
}
