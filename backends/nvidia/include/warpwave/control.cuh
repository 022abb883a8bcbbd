// Barriers, loops, checks and prints of the generated code.
#pragma once
#include "core.cuh"

namespace ww {

// All threads of the block have arrived, and their writes are visible to all of them.
DEVICE void workgroup_barrier() { __syncthreads(); }
DEVICE void global_barrier() { __syncthreads(); }

// A failed ww.check: the smallest number wins, so that the report does not depend on the order of blocks.
DEVICE void fail(int *status, int number) {
  int old = *(volatile int *)status;
  while (old == 0 || number < old) {
    int seen = atomicCAS(status, old, number);
    if (seen == old) return;
    old = seen;
  }
}

// Place for the record of a ww.print.
DEVICE u64 reserve(u64 *prints, int words) {
  return atomicAdd((unsigned long long *)prints, (unsigned long long)words);
}

DEVICE int trip_count(int start, int stop, int step) {
  long distance = step > 0 ? (long)stop - start : (long)start - stop, stride = step > 0 ? step : -(long)step;
  return distance <= 0 ? 0 : (int)((distance + stride - 1) / stride);
}

// The value, in a register that the optimiser does not know the origin of.
DEVICE int in_register(int x) {
  asm("" : "+r"(x));
  return x;
}

}  // namespace ww
