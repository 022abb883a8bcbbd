// Groups of warps: all operations at the scope of N warps, as static functions of group<N>.
#pragma once
#include "conversions.cuh"
#include "maps.cuh"
#include "memory.cuh"
#include "mma_warp.cuh"
#include "mma_warpgroup.cuh"
#include "reductions.cuh"
#include "tma.cuh"

namespace kittens {

// Identity, barriers, semaphores and register budgets of a group.
template <int N> struct group_scope {
  static constexpr int GROUP_WARPS = N, GROUP_THREADS = N * WARP_THREADS;
  DEVICE static int laneid() { return threadIdx.x % GROUP_THREADS; }
  DEVICE static int warpid() { return laneid() / WARP_THREADS; }
  DEVICE static int groupid() { return threadIdx.x / GROUP_THREADS; }
  DEVICE static void sync(int id) { ww::ptx::named_barrier_sync(id, GROUP_THREADS); }
  DEVICE static void arrive(int id) { ww::ptx::named_barrier_arrive(id, GROUP_THREADS); }
  template <u32 Mask = 0xffffffff> DEVICE static void sync() {
    static_assert(N == 1, "groups of several warps need a barrier to meet at");
    __syncwarp(Mask);
  }
  DEVICE static bool elect_leader() { return warpid() == 0 && ww::ptx::elect(); }

  // One arrival for the group.
  DEVICE static void init_semaphore(semaphore &s, int threads, int transactions = 0) {
    if (laneid() == 0) kittens::init_semaphore(s, threads, transactions);
  }
  DEVICE static void invalidate_semaphore(semaphore &s) {
    if (laneid() == 0) kittens::invalidate_semaphore(s);
  }
  DEVICE static void arrive(semaphore &s) {
    if (laneid() == 0) kittens::arrive(s);
  }
  DEVICE static void arrive(semaphore &s, u32 count) {
    if (laneid() == 0) kittens::arrive(s, count);
  }
  DEVICE static void wait(semaphore &s, int phase) { kittens::wait(s, phase); }
  DEVICE static bool try_wait(semaphore &s, int phase) { return kittens::try_wait(s, phase); }
  DEVICE static int test_wait(semaphore &s, int phase) { return kittens::test_wait(s, phase); }
  DEVICE static void arrive(barrier<N> b) { kittens::arrive(b); }
  DEVICE static void arrive_and_wait(barrier<N> b) { kittens::arrive_and_wait(b); }

  // The whole warpgroup runs these; counts are multiples of 8 from 24 to 256.
  template <int Registers> DEVICE static void increase_registers() { ww::ptx::more_registers<Registers>(); }
  template <int Registers> DEVICE static void decrease_registers() { ww::ptx::fewer_registers<Registers>(); }
  DEVICE static void producer_registers() { decrease_registers<24>(); }
  template <int Consumers> DEVICE static void consumer_registers() {
    increase_registers<480 / Consumers - 8 * (Consumers > 3) - 224 * (Consumers == 1)>();
  }
};

// TMA by the first thread of a group.
template <int N> struct group_tma {
  DEVICE static bool first() { return threadIdx.x % (N * WARP_THREADS) == 0; }
  DEVICE static void expect_bytes(semaphore &s, u32 bytes) {
    if (first()) kittens::tma::expect_bytes(s, bytes);
  }
  template <class... Args> DEVICE static void expect(semaphore &s, const Args &...objects) {
    if (first()) kittens::tma::expect(s, objects...);
  }
  template <class Tile, class GL, class Coord = coord<Tile>>
  DEVICE static void prefetch(Tile &dst, const GL &src, const Coord &at) {
    if (first()) kittens::tma::prefetch(dst, src, at);
  }
  template <class Tile, class GL, class Coord = coord<Tile>>
  DEVICE static void load_async(Tile &dst, const GL &src, const Coord &at, semaphore &s) {
    if (first()) kittens::tma::load_async(dst, src, at, s);
  }
  template <int Axis, cache_policy P, class Tile, class GL, class Coord = coord<Tile>>
  DEVICE static void load_async(Tile &dst, const GL &src, const Coord &at, semaphore &s) {
    if (first()) kittens::tma::load_async<Axis, P>(dst, src, at, s);
  }
  template <class Tile, class GL, class Coord = coord<Tile>>
  DEVICE static void store_async(const GL &dst, const Tile &src, const Coord &at) {
    if (first()) kittens::tma::store_async(dst, src, at);
  }
  template <class Tile, class GL, class Coord = coord<Tile>>
  DEVICE static void store_add_async(const GL &dst, const Tile &src, const Coord &at) {
    if (first()) kittens::tma::store_add_async(dst, src, at);
  }
  DEVICE static void store_commit_group() { kittens::tma::store_commit_group(); }
  template <int Left = 0> DEVICE static void store_async_wait() { kittens::tma::store_async_wait<Left>(); }
  template <int Left = 0> DEVICE static void store_async_read_wait() { kittens::tma::store_async_read_wait<Left>(); }
  struct cluster {
    template <class Tile, class GL, class Coord = coord<Tile>>
    DEVICE static void load_async(Tile &dst, const GL &src, const Coord &at, semaphore &s, u16 blocks) {
      if (first()) kittens::tma::cluster::load_async(dst, src, at, s, blocks);
    }
    DEVICE static void expect_bytes(semaphore &s, u32 bytes) {
      if (first()) kittens::tma::cluster::expect_bytes(s, bytes);
    }
    DEVICE static void arrive(semaphore &s, int block, u32 count = 1) {
      if (first()) kittens::tma::cluster::arrive(s, block, count);
    }
    DEVICE static void wait(semaphore &s, int phase) { kittens::tma::cluster::wait(s, phase); }
  };
};

template <int N> struct group : group_scope<N>,
                                register_maps<N>,
                                register_reductions<N>,
                                register_conversions<N>,
                                group_memory<N>,
                                group_mma<N> {
  using register_maps<N>::max;
  using register_maps<N>::min;
  using register_reductions<N>::max;
  using register_reductions<N>::min;
  using tma = group_tma<N>;
};
using warp = group<1>;
using warpgroup = group<4>;

namespace everyone {
DEVICE void sync(int id) { asm volatile("bar.sync %0;" ::"r"(id) : "memory"); }
namespace tma::cluster {
DEVICE void arrive_aligned() { ww::ptx::cluster_arrive(); }
DEVICE void wait_aligned() { ww::ptx::cluster_wait(); }
DEVICE void sync() {
  arrive_aligned();
  wait_aligned();
}
}  // namespace tma::cluster
}  // namespace everyone

namespace pdl {
DEVICE void arrive() { ww::ptx::launch_dependents(); }
DEVICE void wait() { ww::ptx::wait_for_primary(); }
}  // namespace pdl

}  // namespace kittens
