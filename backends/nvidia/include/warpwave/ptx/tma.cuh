// Bulk copies by the tensor memory accelerator (sm_90): tensors of up to 5 dimensions and plain bytes. One thread
// issues a copy; the innermost coordinate comes first.
#pragma once
#include "mbarrier.cuh"

namespace ww::ptx {

// CUtensorMap of the driver, as a kernel parameter (__grid_constant__).
struct alignas(64) tensor_map {
  u64 opaque[16];
};

// L2 hints: the encodings that createpolicy.fractional makes for all lines.
enum Policy : u64 { keep_normal = 0, evict_first = 0x12f0000000000000ul, evict_last = 0x14f0000000000000ul };

DEVICE void prefetch_map(const tensor_map *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Operand lists of one rank: c1 .. c5 are their numbers in the text.
#define WW_C1(c) "r"(c[0])
#define WW_C2(c) "r"(c[0]), "r"(c[1])
#define WW_C3(c) "r"(c[0]), "r"(c[1]), "r"(c[2])
#define WW_C4(c) "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3])
#define WW_C5(c) "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4])

// In stores the map is %0, the source %1, the hint %2; in loads the map is %0, the target %1, the barrier %2, the
// hint %3 and the mask of blocks %4. Coordinates follow.
#define WW_TENSOR(R, store_list, load_list) \
  template <Policy P = keep_normal> \
  DEVICE void tensor_load(u32 to, const tensor_map *map, u32 barrier, const int (&c)[R]) { \
    if constexpr (P == keep_normal) \
      asm volatile("cp.async.bulk.tensor." #R \
                   "d.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%0, {" load_list \
                   "}], [%2];" ::"l"(map), \
                   "r"(to), "r"(barrier), "l"((u64)0), "h"((u16)0), WW_C##R(c) \
                   : "memory"); \
    else \
      asm volatile("cp.async.bulk.tensor." #R \
                   "d.shared::cluster.global.mbarrier::complete_tx::bytes" \
                   ".L2::cache_hint [%1], [%0, {" load_list "}], [%2], %3;" ::"l"(map), \
                   "r"(to), "r"(barrier), "l"((u64)P), "h"((u16)0), WW_C##R(c) \
                   : "memory"); \
  } \
  template <Policy P = keep_normal> \
  DEVICE void tensor_load_multicast(u32 to, const tensor_map *map, u32 barrier, const int (&c)[R], u16 blocks) { \
    if constexpr (P == keep_normal) \
      asm volatile("cp.async.bulk.tensor." #R \
                   "d.shared::cluster.global.mbarrier::complete_tx::bytes" \
                   ".multicast::cluster [%1], [%0, {" load_list "}], [%2], %4;" ::"l"(map), \
                   "r"(to), "r"(barrier), "l"((u64)0), "h"(blocks), WW_C##R(c) \
                   : "memory"); \
    else \
      asm volatile("cp.async.bulk.tensor." #R \
                   "d.shared::cluster.global.mbarrier::complete_tx::bytes" \
                   ".multicast::cluster.L2::cache_hint [%1], [%0, {" load_list "}], [%2], %4, %3;" ::"l"(map), \
                   "r"(to), "r"(barrier), "l"((u64)P), "h"(blocks), WW_C##R(c) \
                   : "memory"); \
  } \
  template <Policy P = keep_normal> DEVICE void tensor_store(const tensor_map *map, u32 from, const int (&c)[R]) { \
    if constexpr (P == keep_normal) \
      asm volatile("cp.async.bulk.tensor." #R "d.global.shared::cta.bulk_group [%0, {" store_list \
                   "}], [%1];" ::"l"(map), \
                   "r"(from), "l"((u64)0), WW_C##R(c) \
                   : "memory"); \
    else \
      asm volatile("cp.async.bulk.tensor." #R "d.global.shared::cta.bulk_group.L2::cache_hint [%0, {" store_list \
                   "}], [%1], %2;" ::"l"(map), \
                   "r"(from), "l"((u64)P), WW_C##R(c) \
                   : "memory"); \
  } \
  DEVICE void tensor_add(const tensor_map *map, u32 from, const int (&c)[R]) { \
    asm volatile("cp.reduce.async.bulk.tensor." #R "d.global.shared::cta.add.bulk_group [%0, {" store_list \
                 "}], [%1];" ::"l"(map), \
                 "r"(from), "l"((u64)0), WW_C##R(c) \
                 : "memory"); \
  } \
  DEVICE void tensor_prefetch(const tensor_map *map, const int (&c)[R]) { \
    asm volatile("cp.async.bulk.prefetch.tensor." #R "d.L2.global [%0, {" store_list "}];" ::"l"(map), "r"(0), \
                 "l"((u64)0), WW_C##R(c) \
                 : "memory"); \
  }
WW_TENSOR(1, "%3", "%5")
WW_TENSOR(2, "%3,%4", "%5,%6")
WW_TENSOR(3, "%3,%4,%5", "%5,%6,%7")
WW_TENSOR(4, "%3,%4,%5,%6", "%5,%6,%7,%8")
WW_TENSOR(5, "%3,%4,%5,%6,%7", "%5,%6,%7,%8,%9")
#undef WW_TENSOR
#undef WW_C1
#undef WW_C2
#undef WW_C3
#undef WW_C4
#undef WW_C5

// Plain bytes: addresses and sizes are multiples of 16.
DEVICE void bulk_load(u32 to, const void *from, u32 bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(global_address(from)), "r"(bytes), "r"(barrier)
               : "memory");
}
DEVICE void bulk_store(void *to, u32 from, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global_address(to)), "r"(from),
               "r"(bytes)
               : "memory");
}

DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until at most N groups of this thread are unfinished; with `read`, until their sources have been read.
template <int N> DEVICE void bulk_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory"); }
template <int N> DEVICE void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

}  // namespace ww::ptx
