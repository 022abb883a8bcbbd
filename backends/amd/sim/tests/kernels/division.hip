#include "common.h"
// Quotients and square roots, correctly rounded by the compiler's sequences of v_div_* and fma.
GLB void WG(64) division(float* __restrict__ Q, double* __restrict__ P, float* __restrict__ R, const float* __restrict__ X,
                         const float* __restrict__ Y, const double* __restrict__ U, const double* __restrict__ V, int n) {
  int i = bid() * 64 + tid();
  if (i >= n) return;
  Q[i] = X[i] / Y[i];
  P[i] = U[i] / V[i];
  R[i] = __builtin_sqrtf(X[i]);
}
