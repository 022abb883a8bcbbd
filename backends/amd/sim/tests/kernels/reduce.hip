#include "common.h"
// Wave reductions and scans by ds_swizzle, bpermute, permute, DPP and (gfx950) permlane swaps.
#define SWIZZLE(v, p) __builtin_bit_cast(float, __builtin_amdgcn_ds_swizzle(__builtin_bit_cast(int, v), p))
GLB void WG(256) reduce(float* __restrict__ O, u32* __restrict__ P, const float* __restrict__ X) {
  int i = bid() * 256 + tid(), l = tid() & 63;
  float v = X[i], m = v, s = v;
  m = fmax_(m, SWIZZLE(m, 0x041F)); m = fmax_(m, SWIZZLE(m, 0x081F)); m = fmax_(m, SWIZZLE(m, 0x101F));
  m = fmax_(m, SWIZZLE(m, 0x201F)); m = fmax_(m, SWIZZLE(m, 0x401F));
#if defined(__gfx950__)
  // The pair's elements go through variables: clang 22 reads element 0 twice when a subscript is bit-cast.
  { auto p = __builtin_amdgcn_permlane32_swap(bc<u32>(m), bc<u32>(m), false, false); u32 a = p[0], b = p[1];
    m = fmax_(__builtin_bit_cast(float, a), __builtin_bit_cast(float, b)); }
  { auto p = __builtin_amdgcn_permlane16_swap(bc<u32>(s), bc<u32>(s), false, false); u32 a = p[0], b = p[1];
    s = __builtin_bit_cast(float, a) + __builtin_bit_cast(float, b); }
#else
  m = fmax_(m, shfl_xor(m, 32));
  s = shfl(s, l & ~16) + shfl(s, l | 16);
#endif
  float scan = v;
  for (int d = 1; d < 64; d <<= 1) { float o = shfl(scan, l - d < 0 ? l : l - d); if (l >= d) scan += o; }
  O[i * 3] = m; O[i * 3 + 1] = s; O[i * 3 + 2] = scan;
  P[i] = (u32)__builtin_amdgcn_ds_permute((63 - l) << 2, i) ^ (u32)__builtin_amdgcn_mov_dpp(i, 0x141, 0xf, 0xf, true);
}
