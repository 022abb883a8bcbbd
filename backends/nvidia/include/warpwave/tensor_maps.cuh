// Tensor maps as kernel parameters, for TMA without kittens::gl.
#pragma once
#include <kittens.cuh>

#include "ptx/tma.cuh"

namespace ww {

using ptx::tensor_map;

// Stands where kittens::tma wants a global tensor: `tma::load_async(tile, mapped(map), {b, d, r, c}, semaphore)`. The
// map has five axes, as kittens::gl makes them for swizzled tiles.
struct mapped {
  using identifier = kittens::ducks::gl::identifier;
  const tensor_map *map;
  DEVICE explicit mapped(const tensor_map &m) : map(&m) {}
  template <class, int> DEVICE const tensor_map *get_tma() const { return map; }
};

// Maps with the tensor's own axes (columns, rows, then the others) and boxes of one panel by all rows of the tile. `at`
// is the tile's first element, columns first. One instruction a panel; in return columns beyond the tensor are zero
// too, whatever its width.
template <class ST, int R, class F> DEVICE void each_panel(ST &tile, const int (&at)[R], F &&f) {
  constexpr int columns = ST::swizzle_bytes / sizeof(typename ST::T), bytes = ST::rows * ST::swizzle_bytes;
  static_assert(ST::swizzle && ST::rows <= 256, "a box has at most 256 rows, and a panel the width of the swizzle");
  EACH(i, ST::cols / columns) {
    int c[R];
    EACH(axis, R) c[axis] = at[axis] + (axis == 0 ? i * columns : 0);
    f(ptx::shared_address(&tile.data[0]) + i * bytes, c);
  }
}
template <ptx::Policy P = ptx::keep_normal, class ST, int R>
DEVICE void load_panels(ST &tile, const tensor_map &map, const int (&at)[R], kittens::semaphore &s) {
  each_panel(tile, at, [&](u32 to, const int(&c)[R]) {
    ptx::tensor_load<P>(to, &map, ptx::shared_address(&s), c);
  });
}
// Into the same place of each block of the mask.
template <ptx::Policy P = ptx::keep_normal, class ST, int R>
DEVICE void load_panels(ST &tile, const tensor_map &map, const int (&at)[R], kittens::semaphore &s, u16 blocks) {
  each_panel(tile, at, [&](u32 to, const int(&c)[R]) {
    ptx::tensor_load_multicast<P>(to, &map, ptx::shared_address(&s), c, blocks);
  });
}
// The writers have met at a barrier after a fence for the asynchronous proxy; commit afterwards.
template <class ST, int R> DEVICE void store_panels(const tensor_map &map, ST &tile, const int (&at)[R]) {
  each_panel(tile, at, [&](u32 from, const int(&c)[R]) { ptx::tensor_store(&map, from, c); });
}
template <class ST, int R> DEVICE void add_panels(const tensor_map &map, ST &tile, const int (&at)[R]) {
  each_panel(tile, at, [&](u32 from, const int(&c)[R]) { ptx::tensor_add(&map, from, c); });
}

}  // namespace ww
