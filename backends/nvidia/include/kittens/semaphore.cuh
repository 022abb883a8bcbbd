// Semaphores (mbarriers) and named barriers at the scope of one thread.
#pragma once
#include "shared.cuh"
#include "../warpwave/ptx/cp_async.cuh"
#include "../warpwave/ptx/mbarrier.cuh"

namespace kittens {

using ww::ptx::shared_address;

struct semaphore {
 private:
  u64 value;
};
template <int Warps> struct barrier {
  int barrier_id;
  DEVICE barrier(int id) : barrier_id(id) {}
  DEVICE barrier operator[](int i) { return barrier(barrier_id + i); }
};

// A phase ends after `threads` arrivals by threads and `transactions` by expect_bytes, and with all expected bytes.
DEVICE void init_semaphore(semaphore &s, int threads, int transactions = 0) {
  ww::ptx::mbarrier_init(shared_address(&s), threads + transactions);
}
DEVICE void invalidate_semaphore(semaphore &s) { ww::ptx::mbarrier_invalidate(shared_address(&s)); }
DEVICE void arrive(semaphore &s) { ww::ptx::mbarrier_arrive(shared_address(&s)); }
DEVICE void arrive(semaphore &s, u32 count) { ww::ptx::mbarrier_arrive(shared_address(&s), count); }
// Until the phase of this parity is over; what the others wrote before they arrived is visible then.
DEVICE void wait(semaphore &s, int phase) { ww::ptx::mbarrier_wait(shared_address(&s), phase); }
// Whether it is over.
DEVICE bool try_wait(semaphore &s, int phase) { return ww::ptx::mbarrier_try_wait(shared_address(&s), phase); }
DEVICE int test_wait(semaphore &s, int phase) { return ww::ptx::mbarrier_test_wait(shared_address(&s), phase); }
DEVICE void arrive_and_wait(semaphore &s, int phase) {
  arrive(s);
  wait(s, phase);
}
template <int Warps> DEVICE void arrive(barrier<Warps> b) {
  ww::ptx::named_barrier_arrive(b.barrier_id, Warps * WARP_THREADS);
}
template <int Warps> DEVICE void arrive_and_wait(barrier<Warps> b) {
  ww::ptx::named_barrier_sync(b.barrier_id, Warps * WARP_THREADS);
}

template <int N = 0> DEVICE void load_async_wait() {
  ww::ptx::cp_async_wait<N>();
  __syncwarp();
}

// Bytes that TMA moves for these objects.
template <class T> constexpr u32 bytes_of = sizeof(T);
template <ducks::st::all S> constexpr u32 bytes_of<S> = S::num_elements * sizeof(typename S::dtype);
template <ducks::sv::all S> constexpr u32 bytes_of<S> = S::length * sizeof(typename S::dtype);
template <class... Args> constexpr u32 size_bytes = (0 + ... + bytes_of<Args>);

// Phases of a ring of semaphores as bits of one word: the low half for "full", the high half for "empty".
template <int Half> DEVICE bool get_phasebit(u32 bits, int ring) { return bits >> (ring + Half * 16) & 1; }
template <int Half> DEVICE void update_phasebit(u32 &bits, int ring) { bits ^= 1u << (ring + Half * 16); }
template <int N> DEVICE int ring_advance(int ring, int distance = 1) { return (ring + distance) % N; }
template <int N> DEVICE int ring_retreat(int ring, int distance = 1) { return (ring + 16 * N - distance) % N; }

DEVICE int laneid() { return threadIdx.x % WARP_THREADS; }
DEVICE int warpid() { return threadIdx.x / WARP_THREADS; }
DEVICE int warpgroupid() { return threadIdx.x / WARPGROUP_THREADS; }
DEVICE int smid() { return ww::ptx::multiprocessor(); }
DEVICE int cluster_ctarank() { return ww::ptx::cluster_rank(); }
DEVICE int cluster_nctarank() { return ww::ptx::cluster_size(); }
DEVICE int3 clusterIdx() {
  int3 id;
  asm("mov.u32 %0, %%clusterid.x; mov.u32 %1, %%clusterid.y; mov.u32 %2, %%clusterid.z;"
      : "=r"(id.x), "=r"(id.y), "=r"(id.z));
  return id;
}

}  // namespace kittens
