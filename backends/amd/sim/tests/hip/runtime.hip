// Kernels for the tests of the HIP runtime: arguments of several sizes, hidden arguments, LDS, variables, faults.
#include "common.h"

__attribute__((device)) int bias[2] = {5, -7};

extern "C" {

// c[i] = a[i] + b[i]
GLB void vector_add(float* c, const float* a, const float* b, int n) {
  int i = bid() * 64 + tid();
  if (i < n) c[i] = a[i] + b[i];
}

// x[i] = x[i] * factor + shift: arguments of 8, 1, 8 and 4 bytes
GLB void affine(float* x, unsigned char factor, double shift, int n) {
  int i = bid() * 64 + tid();
  if (i < n) x[i] = x[i] * factor + (float)shift;
}

// out[block] = {blocks, threads per block}: read from the hidden arguments
GLB void geometry(u32* out, int n) {
  if (tid() == 0 && bid() < n) {
    out[2 * bid()] = __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x();
    out[2 * bid() + 1] = __builtin_amdgcn_workgroup_size_x();
  }
}

// reverses each block of n <= 64 words in dynamic LDS
GLB void WG(64) reverse(u32* x) {
  extern SHM u32 lds[];
  lds[tid()] = x[bid() * 64 + tid()];
  sync();
  x[bid() * 64 + tid()] = lds[63 - tid()];
}

// x[i] += bias[which], and counts launches in bias[1 - which]
GLB void add_bias(int* x, int which) {
  x[tid()] += bias[which];
  if (tid() == 0) bias[1 - which] += 1;
}

// x[index] = 1 from one lane
GLB void store_at(float* x, long index) {
  if (tid() == 0) x[index] = 1.0f;
}

// copies one word per lane
GLB void copy_words(u32* to, const u32* from) { to[bid() * 64 + tid()] = from[bid() * 64 + tid()]; }

}
