// cp.async (sm_80): copies from global to shared memory that run on after the instruction.
#pragma once
#include "base.cuh"

namespace ww::ptx {

// Bytes 16, 8 or 4, to an address aligned to as many; of them `source` are read and the rest is zero.
template <int Bytes> DEVICE void cp_async(u32 to, const void *from, int source = Bytes) {
  static_assert(Bytes == 16 || Bytes == 8 || Bytes == 4, "cp.async moves 4, 8 or 16 bytes");
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global_address(from)), "r"(source)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(global_address(from)), "r"(source),
                 "n"(Bytes)
                 : "memory");
}
DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most N of this thread's groups are unfinished.
template <int N = 0> DEVICE void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

}  // namespace ww::ptx
