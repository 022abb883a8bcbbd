// mbarriers in shared memory, named barriers, cluster barriers, register budgets, proxy fences.
#pragma once
#include "base.cuh"

namespace ww::ptx {

DEVICE void mbarrier_init(u32 barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
DEVICE void mbarrier_invalidate(u32 barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
DEVICE void mbarrier_arrive(u32 barrier) {
  asm volatile("{.reg .b64 t; mbarrier.arrive.shared::cta.b64 t, [%0];}" ::"r"(barrier) : "memory");
}
DEVICE void mbarrier_arrive(u32 barrier, u32 count) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
DEVICE void mbarrier_arrive_expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Whether the phase of this parity is over; try_wait (sm_90) may sleep a while first.
DEVICE bool mbarrier_test_wait(u32 barrier, u32 parity) {
  u32 done;
  asm volatile(
      "{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done;
}
DEVICE bool mbarrier_try_wait(u32 barrier, u32 parity) {
#if __CUDA_ARCH__ >= 900
  u32 done;
  asm volatile(
      "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done;
#else
  return mbarrier_test_wait(barrier, parity);
#endif
}
DEVICE void mbarrier_wait(u32 barrier, u32 parity) {
  while (!mbarrier_try_wait(barrier, parity)) {
  }
}

// -- clusters ----------------------------------------------------------------------------------------------

// The address of the same shared variable in another block of the cluster.
DEVICE u32 address_in(u32 address, int block) {
  u32 there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
  return there;
}
DEVICE void mbarrier_arrive_in(u32 barrier, int block, u32 count) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(address_in(barrier, block)),
               "r"(count)
               : "memory");
}
// The same for a thread that has only read: nothing that it wrote needs to be seen there, so no fence comes first.
DEVICE void mbarrier_free_in(u32 barrier, int block) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address_in(barrier, block)) : "memory");
}
DEVICE void mbarrier_arrive_expect_in(u32 barrier, int block, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(
                   address_in(barrier, block)),
               "r"(bytes)
               : "memory");
}
// A wait that also sees what other blocks of the cluster wrote before they arrived.
DEVICE bool mbarrier_try_wait_cluster(u32 barrier, u32 parity) {
  u32 done;
  asm volatile(
      "{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done;
}
DEVICE void mbarrier_wait_cluster(u32 barrier, u32 parity) {
  while (!mbarrier_try_wait_cluster(barrier, parity)) {
  }
}
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

#define WW_SPECIAL(name, text) \
  DEVICE int name() { \
    int x; \
    asm("mov.u32 %0, %%" text ";" : "=r"(x)); \
    return x; \
  }
WW_SPECIAL(cluster_rank, "cluster_ctarank")
WW_SPECIAL(cluster_size, "cluster_nctarank")
WW_SPECIAL(multiprocessor, "smid")
#undef WW_SPECIAL

// -- threads of a block --------------------------------------------------------------------------------------

DEVICE void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
DEVICE void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

template <int N> DEVICE void more_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> DEVICE void fewer_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }

// One lane of the warp, the same each time.
DEVICE bool elect() {
  u32 elected;
  asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p;}" : "=r"(elected));
  return elected;
}

// -- fences --------------------------------------------------------------------------------------------------

// Writes to shared memory by threads become visible to TMA and wgmma.
DEVICE void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Initialised mbarriers become visible to the cluster and to TMA.
DEVICE void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// Dependent launches.
DEVICE void launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
DEVICE void wait_for_primary() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

}  // namespace ww::ptx
