#include "common.h"
// C (i32) = A * B^T with int8, 32x32 tiles in one wavefront, then a dot4 check sum of the rows of A.
typedef int i16v __attribute__((ext_vector_type(16)));
GLB void WG(64) gemm_i8(int* __restrict__ C, int* __restrict__ rowsum, const signed char* __restrict__ A,
                        const signed char* __restrict__ B, int K, int N) {
  int l = tid(), p = l & 31, g = l >> 5, bm = bidy() * 32, bn = bid() * 32;
  i16v acc = {};
  int sum = 0;
#if defined(__gfx950__)
  for (int k = 0; k < K; k += 32) {
    i4 a = *(const i4*)(A + (long)(bm + p) * K + k + g * 16), b = *(const i4*)(B + (long)(bn + p) * K + k + g * 16);
    acc = __builtin_amdgcn_mfma_i32_32x32x32_i8(a, b, acc, 0, 0, 0);
    for (int e = 0; e < 4; e++) sum = __builtin_amdgcn_sdot4(a[e], 0x01010101, sum, false);
  }
#else
  for (int k = 0; k < K; k += 16) {
    long a = *(const long*)(A + (long)(bm + p) * K + k + g * 8), b = *(const long*)(B + (long)(bn + p) * K + k + g * 8);
    acc = __builtin_amdgcn_mfma_i32_32x32x16_i8(a, b, acc, 0, 0, 0);
    sum = __builtin_amdgcn_sdot4((int)a, 0x01010101, sum, false);
    sum = __builtin_amdgcn_sdot4((int)(a >> 32), 0x01010101, sum, false);
  }
#endif
  for (int r = 0; r < 16; r++) C[(long)(bm + 8 * (r >> 2) + 4 * g + (r & 3)) * N + bn + p] = acc[r];
  sum += __builtin_amdgcn_ds_bpermute((l ^ 32) << 2, sum);
  if (g == 0 && bid() == 0) rowsum[bm + p] = sum;
}
