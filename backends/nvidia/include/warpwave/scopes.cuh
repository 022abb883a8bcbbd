// The names of ThunderKittens that generated code uses, in one namespace: upstream's own where they do what is meant,
// and others of the same name, operand order and meaning where upstream has none or another (docs/kittens.md).
#pragma once
#include "core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tma.cuh"

extern __shared__ __align__(1024) ww::u8 smem[];  // all of a block's shared memory

namespace ww::tk {

using kittens::st;
using kittens::st_bf;
using kittens::st_fl;
using kittens::st_fp8e4m3;
using kittens::st_fp8e5m2;
using kittens::st_hf;
using ptx::fence_async_shared;

// A warp's part of a product's rows and columns, as ThunderKittens' row_l tiles hold it: base tiles of 16 x 16 row by
// row, in each first the left 8 columns, rows lane / 4 and lane / 4 + 8, then the right 8. W items are the registers of
// one instruction: by default those of the widest wgmma that divides the columns.
DEVICE constexpr int widest_product(int cols) {
  int n = cols < 256 ? cols / 16 * 16 : 256;
  while (n > 16 && cols % n) n -= 16;
  return n / 2;
}
template <class T, int Rows, int Cols, int W = widest_product(Cols)> struct rt : tile<T, Rows * Cols / 32, W> {
  static constexpr int rows = Rows, cols = Cols;
};
template <int Rows, int Cols, int W = widest_product(Cols)> using rt_fl = rt<float, Rows, Cols, W>;
template <int Rows, int Cols, int W = widest_product(Cols)> using rt_bf = rt<bf16, Rows, Cols, W>;
template <int Rows, int Cols, int W = widest_product(Cols)> using rt_hf = rt<f16, Rows, Cols, W>;

// A semaphore of kittens by its 32-bit address, which is what the instructions take.
enum class semaphore : u32 {};
// Those of a ring's stages: the first one at byte `At` of shared memory, `Stride` bytes from one to the next.
template <int At, int Stride> struct ring_semaphores {
  DEVICE semaphore operator[](int stage) const { return (semaphore)(ptx::shared_address(smem) + At + stage * Stride); }
};

DEVICE void init_semaphore(semaphore s, int threads) { ptx::mbarrier_init((u32)s, threads); }
DEVICE void arrive(semaphore s) { ptx::mbarrier_arrive((u32)s); }
// Upstream's `wait` lets the compiler move reads of shared memory above it; this one does not.
DEVICE void wait(semaphore s, u32 phase) { ptx::mbarrier_wait((u32)s, phase); }

// Barriers of N warps by number. Upstream's let the compiler move accesses to shared memory across them.
template <int N> struct group : kittens::group<N> {
  DEVICE static void sync(int id) { ptx::named_barrier_sync(id, 32 * N); }
  DEVICE static void arrive(int id) { ptx::named_barrier_arrive(id, 32 * N); }
};

namespace tma {
using kittens::tma::store_async_read_wait;
using kittens::tma::store_commit_group;
DEVICE void expect_bytes(semaphore s, u32 bytes) { ptx::mbarrier_arrive_expect((u32)s, bytes); }
}  // namespace tma

}  // namespace ww::tk
