// Products of a warpgroup by wgmma: D in registers (16 rows a warp), A in registers or shared memory, B in shared
// memory, all shared tiles swizzled. mma_ adds to D, mm_ overwrites it; both commit, and D is there after
// mma_async_wait. Operands of one byte and f32 (as tf32) are K-major in hardware: A and B^T only.
#pragma once
#include "../warpwave/ptx/wgmma.cuh"
#include "mma_warp.cuh"
#include "semaphore.cuh"

namespace kittens {

namespace detail {

// The descriptor of a shared tile, and how far each k step of 32 bytes (K-major) or 16 rows (MN-major) moves it.
// A window of a tile begins at a whole number of 8 rows and, in K-major operands, of 32 bytes.
template <class ST, bool KMajor> struct shared_operand {
  static_assert(ST::swizzle, "wgmma reads swizzled tiles");
  static_assert(KMajor || sizeof(typename ST::T) == 2, "one-byte and tf32 operands are K-major: A and B^T");
  static constexpr int S = ST::swizzle_bytes, panel = ST::underlying_rows * S;
  u64 start;

  DEVICE explicit shared_operand(const ST &tile) {
    u32 address = ww::ptx::shared_address(&tile.data[0]);
    if constexpr (requires { tile.row_offset; }) {
      const u32 bytes = tile.col_offset * sizeof(typename ST::T);
      address += tile.row_offset * S + bytes / S * panel + bytes % S;
    }
    start = described(address);
  }
  DEVICE static constexpr u64 described(u32 address) {
    return ww::ptx::wgmma_descriptor(address, KMajor ? 16 : panel, 8 * S, S);
  }
  DEVICE static constexpr int advance(int step) {
    return KMajor ? 32 * step / S * panel + 32 * step % S : 16 * S * step;
  }
  DEVICE u64 at(int step) const { return start + (advance(step) >> 4); }
};

template <class D> DEVICE auto &flat(D &d, int block) {
  using T = typename D::T;
  return reinterpret_cast<T(&)[D::cols / 2]>(d.tiles[block][0].data[0]);
}
template <class A> DEVICE void registers_of(u32 (&r)[4], const A &a, int block, int step) {
  EACH(k, 4) r[k] = ww::bits<u32>(a.tiles[block][step].data[k]);
}

}  // namespace detail

template <> struct group_mma<4> {
  // What was written to D and to shared memory so far is seen by the products that follow.
  template <ducks::rt::row_layout D> DEVICE static void mma_fence(D &d) {
    ww::pin(d);
    mma_fence();
  }
  DEVICE static void mma_fence() {
    ww::ptx::wgmma_fence();
    ww::ptx::fence_async_shared();
  }
  DEVICE static void mma_commit_group() { ww::ptx::wgmma_commit(); }
  template <int Left = 0> DEVICE static void mma_async_wait() { ww::ptx::wgmma_wait<Left>(); }

  // d (+)= op(a) op(b), the registers of d fenced first if `fence`, not committed.
  template <int TransA, int TransB, int fence, int accumulate, class D, class A, class B>
  DEVICE static void issue(D &d, const A &a, const B &b) {
    constexpr bool in_registers = ducks::rt::all<A>;
    using TA = typename A::T;
    using TB = typename B::T;
    constexpr int size = sizeof(TA), k_extent = TransA ? A::rows : A::cols, steps = k_extent * size / 32;
    constexpr auto fa = detail::format_of<TA>::value, fb = detail::format_of<TB>::value;
    static_assert(sizeof(TB) == size && (size == 1 || fa == fb), "A and B have one element type, or two of fp8");
    static_assert((TransB ? B::cols : B::rows) == k_extent, "A and B agree in k");
    static_assert((TransB ? B::rows : B::cols) == D::cols && D::cols <= 256, "D has B's columns, up to 256");
    static_assert(in_registers ? A::rows == D::rows : (TransA ? A::cols : A::rows) == 64 && D::rows == 16,
                  "A in shared memory has 64 rows, in registers those of D");
    static_assert(!in_registers || size < 4, "tf32 operands come from shared memory: its register layout is another");
    static_assert(!(in_registers && TransA), "A in registers is not transposed");
    if constexpr (fence) {
      if constexpr (in_registers) keep(a);
      mma_fence(d);
    }
    const detail::shared_operand<B, TransB == 1> right(b);
    if constexpr (in_registers) {
      EACH(i, D::height) EACH(k, steps) {
        u32 r[4];
        detail::registers_of(r, a, i, k);
        ww::ptx::wgmma<fa, fb, 1 - TransB>(detail::flat(d, i), r, right.at(k), accumulate || k > 0);
      }
    } else {
      const detail::shared_operand<A, TransA == 0> left(a);
      EACH(k, steps)
        ww::ptx::wgmma<fa, fb, TransA, 1 - TransB>(detail::flat(d, 0), left.at(k), right.at(k), accumulate || k > 0);
    }
  }

#define KITTENS_PRODUCT(name, ta, tb) \
  template <class D, class A, class B, int fence = 1, int accumulate = 1> \
  DEVICE static void mma_##name(D &d, const A &a, const B &b) { \
    issue<ta, tb, fence, accumulate>(d, a, b); \
    mma_commit_group(); \
  } \
  template <class D, class A, class B> DEVICE static void mm_##name(D &d, const A &a, const B &b) { \
    mma_##name<D, A, B, 1, 0>(d, a, b); \
  }
  KITTENS_PRODUCT(AB, 0, 0)
  KITTENS_PRODUCT(ABt, 0, 1)
  KITTENS_PRODUCT(AtB, 1, 0)
  KITTENS_PRODUCT(AtBt, 1, 1)
#undef KITTENS_PRODUCT
  template <int TransA, int TransB, class D, class A, class B> DEVICE static void mma(D &d, const A &a, const B &b) {
    issue<TransA, TransB, 1, 1>(d, a, b);
    mma_commit_group();
  }
  template <int TransA, int TransB, class D, class A, class B> DEVICE static void mm(D &d, const A &a, const B &b) {
    issue<TransA, TransB, 1, 0>(d, a, b);
    mma_commit_group();
  }

 private:
  // Registers of A are computed before the fence.
  template <class A> DEVICE static void keep(const A &a) {
    EACH(i, A::height) EACH(j, A::width) EACH(k, 4)
      asm volatile("" ::"r"(ww::bits<u32>(a.tiles[i][j].data[k])) : "memory");
  }
};

}  // namespace kittens
