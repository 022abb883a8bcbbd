// TMA at the scope of one thread. A tensor gives the map of a tile type by get_tma<Tile, Axis>(); swizzled tiles have
// maps of five axes: column in the panel, rows, panel, and the two other axes.
#pragma once
#include "global.cuh"
#include "semaphore.cuh"

namespace kittens {

enum class cache_policy { NORMAL = 0, EVICT_FIRST = 1, EVICT_LAST = 2 };
struct dim {
  static constexpr int BATCH = 0, DEPTH = 1, ROW = 2, COL = 3;
};

namespace detail {

template <class S> concept shared_object = ducks::st::all<S> || ducks::sv::all<S>;

template <cache_policy P> constexpr auto hint = P == cache_policy::NORMAL        ? ww::ptx::keep_normal
                                                : P == cache_policy::EVICT_FIRST ? ww::ptx::evict_first
                                                                                 : ww::ptx::evict_last;

// Elements of one instruction for a vector: the largest multiple of 16 up to 256 that divides it; so that each begins
// at a multiple of 128 bytes, vectors of more than one have whole 128 bytes in each.
DEVICE constexpr int vector_box(int length, int size) {
  int best = 16;
  for (int n = 16; n <= 256 && n <= length; n += 16)
    if (length % n == 0 && (n == length || n * size % 128 == 0)) best = n;
  return best;
}

// Coordinates of an instruction: five axes for swizzled tiles, else the tensor's four.
template <class Tile> constexpr int rank_of = 4;
template <ducks::st::all Tile> constexpr int rank_of<Tile> = Tile::swizzle ? 5 : 4;

// Calls f(shared address, coordinates) for each instruction that moves the tile or vector.
template <int Axis, class Tile, class Coord, class F> DEVICE void each_box(const Tile &tile, const Coord &at, F &&f) {
  const u32 address = shared_address(&tile.data[0]);
  if constexpr (ducks::sv::all<Tile>) {
    constexpr int size = sizeof(typename Tile::T), n = vector_box(Tile::length, size);
    const coord<> e = at.template unit_coord<-1, 3>();
    EACH(i, Tile::length / n) {
      const int c[4] = {e.c + i * n, e.r, e.d, e.b};
      f(address + i * n * size, c);
    }
  } else {
    const coord<> e = at.template unit_coord<Axis, 3>();
    const int rows = e.template dim<Axis>(), inner = Axis == 2 ? e.d : e.r, outer = Axis == 0 ? e.d : e.b;
    if constexpr (Tile::swizzle) {
      const int c[5] = {0, rows, e.c / (int)(Tile::swizzle_bytes / sizeof(typename Tile::T)), inner, outer};
      f(address, c);
    } else {
      const int c[4] = {e.c, rows, inner, outer};
      f(address, c);
    }
  }
}

}  // namespace detail

namespace tma {

DEVICE void expect_bytes(semaphore &s, u32 bytes) { ww::ptx::mbarrier_arrive_expect(shared_address(&s), bytes); }
template <class T, class... Args> DEVICE void expect(semaphore &s, const T &, const Args &...) {
  expect_bytes(s, size_bytes<T, Args...>);
}
DEVICE void store_commit_group() { ww::ptx::bulk_commit(); }
template <int N = 0> DEVICE void store_async_wait() { ww::ptx::bulk_wait<N>(); }
template <int N = 0> DEVICE void store_async_read_wait() { ww::ptx::bulk_wait_read<N>(); }

template <int Axis, cache_policy P, detail::shared_object Tile, class GL, class Coord = coord<Tile>>
DEVICE void load_async(Tile &dst, const GL &src, const Coord &at, semaphore &s) {
  detail::each_box<Axis>(dst, at, [&](u32 to, const int (&c)[detail::rank_of<Tile>]) {
    ww::ptx::tensor_load<detail::hint<P>>(to, src.template get_tma<Tile, Axis>(), shared_address(&s), c);
  });
}
// Writers of the tile have met at a barrier before; the store is committed as a group of its own.
template <int Axis, cache_policy P, detail::shared_object Tile, class GL, class Coord = coord<Tile>>
DEVICE void store_async(const GL &dst, const Tile &src, const Coord &at) {
  ww::ptx::fence_async_shared();
  detail::each_box<Axis>(src, at, [&](u32 from, const int (&c)[detail::rank_of<Tile>]) {
    ww::ptx::tensor_store<detail::hint<P>>(dst.template get_tma<Tile, Axis>(), from, c);
  });
  store_commit_group();
}
template <int Axis, detail::shared_object Tile, class GL, class Coord = coord<Tile>>
DEVICE void store_add_async(const GL &dst, const Tile &src, const Coord &at) {
  static_assert(sizeof(typename Tile::T) > 1, "TMA adds elements of 2 or 4 bytes");
  ww::ptx::fence_async_shared();
  detail::each_box<Axis>(src, at, [&](u32 from, const int (&c)[detail::rank_of<Tile>]) {
    ww::ptx::tensor_add(dst.template get_tma<Tile, Axis>(), from, c);
  });
  store_commit_group();
}
template <int Axis = 2, detail::shared_object Tile, class GL, class Coord = coord<Tile>>
DEVICE void prefetch(Tile &dst, const GL &src, const Coord &at) {
  detail::each_box<Axis>(dst, at, [&](u32, const int (&c)[detail::rank_of<Tile>]) {
    ww::ptx::tensor_prefetch(src.template get_tma<Tile, Axis>(), c);
  });
}
template <detail::shared_object Tile, class GL, class Coord = coord<Tile>>
DEVICE void load_async(Tile &dst, const GL &src, const Coord &at, semaphore &s) {
  load_async<dim::ROW, cache_policy::NORMAL>(dst, src, at, s);
}
template <detail::shared_object Tile, class GL, class Coord = coord<Tile>>
DEVICE void store_async(const GL &dst, const Tile &src, const Coord &at) {
  store_async<dim::ROW, cache_policy::NORMAL>(dst, src, at);
}
template <detail::shared_object Tile, class GL, class Coord = coord<Tile>>
DEVICE void store_add_async(const GL &dst, const Tile &src, const Coord &at) {
  store_add_async<dim::ROW>(dst, src, at);
}
// Plain bytes, multiples of 16.
DEVICE void load_async(void *dst, void *src, u32 bytes, semaphore &s) {
  ww::ptx::bulk_load(shared_address(dst), src, bytes, shared_address(&s));
}
DEVICE void store_async(void *dst, void *src, u32 bytes) {
  ww::ptx::fence_async_shared();
  ww::ptx::bulk_store(dst, shared_address(src), bytes);
  store_commit_group();
}

namespace cluster {

DEVICE bool try_wait(semaphore &s, int phase) {
  return ww::ptx::mbarrier_try_wait_cluster(shared_address(&s), phase);
}
DEVICE void wait(semaphore &s, int phase) { ww::ptx::mbarrier_wait_cluster(shared_address(&s), phase); }
DEVICE void arrive(semaphore &s, int block, u32 count = 1) {
  ww::ptx::mbarrier_arrive_in(shared_address(&s), block, count);
}
DEVICE void expect_bytes(semaphore &s, u32 bytes) { tma::expect_bytes(s, bytes); }
DEVICE void expect_bytes(semaphore &s, u32 bytes, int block) {
  ww::ptx::mbarrier_arrive_expect_in(shared_address(&s), block, bytes);
}
template <class T, class... Args> DEVICE void expect(semaphore &s, const T &, const Args &...) {
  expect_bytes(s, size_bytes<T, Args...>);
}
// To the same place in each block of the mask, whose own semaphore at the same place counts the bytes.
template <int Axis, cache_policy P, detail::shared_object Tile, class GL, class Coord = coord<Tile>>
DEVICE void load_async(Tile &dst, const GL &src, const Coord &at, semaphore &s, u16 blocks) {
  detail::each_box<Axis>(dst, at, [&](u32 to, const int (&c)[detail::rank_of<Tile>]) {
    ww::ptx::tensor_load_multicast<detail::hint<P>>(to, src.template get_tma<Tile, Axis>(), shared_address(&s), c,
                                                    blocks);
  });
}
template <detail::shared_object Tile, class GL, class Coord = coord<Tile>>
DEVICE void load_async(Tile &dst, const GL &src, const Coord &at, semaphore &s, u16 blocks) {
  load_async<dim::ROW, cache_policy::NORMAL>(dst, src, at, s, blocks);
}

}  // namespace cluster
}  // namespace tma
}  // namespace kittens
