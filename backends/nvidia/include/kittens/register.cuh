// Register tiles and vectors. Lane l holds of a 16x16 base tile in row layout rows l/4 and l/4 + 8, columns
// 2 (l%4) + {0, 1} and 8 more; in column layout rows and columns swap.
#pragma once
#include "../warpwave/items.cuh"
#include "types.cuh"

namespace kittens {

constexpr int WARP_THREADS = 32, WARPGROUP_WARPS = 4, WARPGROUP_THREADS = 128, MAX_SHARED_MEMORY = 232448;
template <class T> constexpr int TILE_ROW_DIM = 16;
template <class T> constexpr int TILE_COL_DIM = sizeof(T) == 1 ? 32 : 16;

namespace ducks {
namespace rt_layout {
struct row {};
struct col {};
}  // namespace rt_layout
namespace rv_layout {
struct align { static constexpr int inner_dim = 2; };
struct ortho { static constexpr int inner_dim = 1; };
struct naive { static constexpr int inner_dim = 1; };
}  // namespace rv_layout
namespace rt { struct identifier {}; }
namespace rv { struct identifier {}; }
struct default_type {};
}  // namespace ducks

using row_l = ducks::rt_layout::row;
using col_l = ducks::rt_layout::col;
using align_l = ducks::rv_layout::align;
using ortho_l = ducks::rv_layout::ortho;
using naive_l = ducks::rv_layout::naive;

template <class T_, class Layout> struct rt_base {
  using layout = Layout;
  using T = base_types::unpacked<T_>;
  using T2 = base_types::packed<T_>;
  using dtype = T2;
  static constexpr int tile_size_row = TILE_ROW_DIM<T>, tile_size_col = TILE_COL_DIM<T>;
  static constexpr int rows = tile_size_row, cols = tile_size_col, num_elements = rows * cols;
  static constexpr int elements_per_thread = num_elements / 32, packed_per_thread = 4;
  static constexpr bool is_row = base_types::same<Layout, row_l>;
  static_assert(is_row || sizeof(T) > 1, "tiles of one-byte elements have row layout");
  dtype data[packed_per_thread];
};

template <class T_, size_t Length, class Layout = naive_l> struct rv {
  using identifier = ducks::rv::identifier;
  using layout = Layout;
  static constexpr bool is_naive = base_types::same<Layout, naive_l>, is_ortho = base_types::same<Layout, ortho_l>;
  using T = base_types::unpacked<T_>;
  using T2 = base_types::packed<T_>;
  using dtype = base_types::either<is_naive, T, T2>;
  static constexpr int length = Length, tiles = Length / 16, inner_dim = Layout::inner_dim;
  static constexpr int outer_dim = is_naive ? (tiles + 1) / 2 : tiles;
  static_assert(length % 16 == 0, "the length of a register vector is a multiple of 16");
  static_assert(sizeof(T) > 1, "register vectors have elements of 2 or 4 bytes");
  dtype data[outer_dim][inner_dim];

  DEVICE dtype *operator[](size_t i) { return &data[i][0]; }
  DEVICE const dtype *operator[](size_t i) const { return &data[i][0]; }
  DEVICE dtype &operator[](int2 i) { return data[i.x][i.y]; }
  DEVICE const dtype &operator[](int2 i) const { return data[i.x][i.y]; }
  DEVICE void operator=(const T &value) { EACH(i, ww::items<rv>()) ww::set(*this, i, value); }
  template <class U> DEVICE void operator=(const rv<U, Length, Layout> &other) {
    EACH(i, ww::items<rv>()) ww::set(*this, i, base_types::convert_to<T>(ww::get(other, i)));
  }
};

template <class T_, int Rows, int Cols, class Layout = row_l> struct rt {
  using identifier = ducks::rt::identifier;
  using layout = Layout;
  using base = rt_base<T_, Layout>;
  using T = typename base::T;
  using T2 = typename base::T2;
  using dtype = T2;
  static constexpr int rows = Rows, cols = Cols;
  static constexpr int tile_size_row = base::tile_size_row, tile_size_col = base::tile_size_col;
  static_assert(rows % tile_size_row == 0, "rows are a multiple of 16");
  static_assert(cols % tile_size_col == 0, "columns are a multiple of 16, of 32 for one-byte elements");
  static constexpr int height = rows / tile_size_row, width = cols / tile_size_col;
  static constexpr int num_elements = rows * cols, elements_per_thread = num_elements / 32;
  static constexpr int packed_per_tile = 4, packed_per_thread = 4 * width * height;
  static constexpr bool is_row = base::is_row;
  using row_vec = rv<T, cols, base_types::either<is_row, align_l, ortho_l>>;
  using col_vec = rv<T, rows, base_types::either<is_row, ortho_l, align_l>>;
  base tiles[height][width];

  DEVICE void operator=(const T &value) { EACH(i, elements_per_thread) ww::set(*this, i, value); }
  template <class U> DEVICE void operator=(const rt<U, Rows, Cols, Layout> &other) {
    static_assert(sizeof(U) == 1 ? sizeof(T) == 1 : sizeof(T) > 1, "use copy between one-byte and wider elements");
    EACH(i, elements_per_thread) ww::set(*this, i, base_types::convert_to<T>(ww::get(other, i)));
  }
};

#define KITTENS_REGISTER_ALIAS(T, suffix) \
  template <int R, int C, class L = row_l> using rt_##suffix = rt<T, R, C, L>;
KITTENS_REGISTER_ALIAS(float, fl)
KITTENS_REGISTER_ALIAS(bf16, bf)
KITTENS_REGISTER_ALIAS(half, hf)
KITTENS_REGISTER_ALIAS(fp8e4m3, fp8e4m3)
KITTENS_REGISTER_ALIAS(fp8e5m2, fp8e5m2)
#undef KITTENS_REGISTER_ALIAS
template <int N, class L = naive_l> using rv_fl = rv<float, N, L>;
template <int N, class L = naive_l> using rv_bf = rv<bf16, N, L>;
template <int N, class L = naive_l> using rv_hf = rv<half, N, L>;
template <class Tile> using row_vec = typename Tile::row_vec;
template <class Tile> using col_vec = typename Tile::col_vec;

namespace ducks {
namespace rt {
template <class R> concept all = base_types::same<typename R::identifier, identifier>;
template <class R> concept row_layout = all<R> && R::is_row;
template <class R> concept col_layout = all<R> && !R::is_row;
}  // namespace rt
namespace rv {
template <class R> concept all = base_types::same<typename R::identifier, identifier>;
}
}  // namespace ducks

// -- where the items of a lane lie -----------------------------------------------------------------------

namespace detail {

// Across the packed pairs: lane / 4, second half in odd data[k]. Along them: 2 (lane % 4), second half from data[2] on.
template <class RT> DEVICE constexpr int across(int lane, int i) { return lane / 4 + 8 * (i / ww::parts<RT>() % 2); }
template <class RT> DEVICE constexpr int along(int lane, int i) {
  constexpr int n = ww::parts<RT>();
  return n * (lane % 4) + 4 * n * (i / n % 4 / 2) + i % n;
}
template <class RT> DEVICE constexpr int base_row(int i) { return i / (4 * ww::parts<RT>()) / RT::width; }
template <class RT> DEVICE constexpr int base_col(int i) { return i / (4 * ww::parts<RT>()) % RT::width; }

// Which of the N warps' tiles this warp owns in the group's tile: a warpgroup's four stay as far apart as wgmma puts
// them, so that groups of several warpgroups hold the rows of their products.
template <int N> DEVICE int group_chunk() {
  const int warp = threadIdx.x / WARP_THREADS % N;
  return N % 4 == 0 ? warp / 4 + warp % 4 * (N / 4) : warp;
}

// Row and column of item i of this lane, within the warp's tile.
template <class RT> DEVICE constexpr int item_row(int lane, int i) {
  return 16 * base_row<RT>(i) + (RT::is_row ? across<RT>(lane, i) : along<RT>(lane, i));
}
template <class RT> DEVICE constexpr int item_col(int lane, int i) {
  return RT::tile_size_col * base_col<RT>(i) + (RT::is_row ? along<RT>(lane, i) : across<RT>(lane, i));
}

// Which item of a tile's col_vec (one value a row) and row_vec (one a column) goes with item i of the tile.
template <class RT> DEVICE constexpr int ortho_item(int base, int i) { return 2 * base + i / 2 % 2; }
template <class RT> DEVICE constexpr int align_item(int base, int i) { return 4 * base + 2 * (i / 2 % 4 / 2) + i % 2; }
template <class RT> DEVICE constexpr int col_vec_item(int i) {
  static_assert(ww::parts<RT>() == 2, "tiles of one-byte elements have no vectors");
  return RT::is_row ? ortho_item<RT>(base_row<RT>(i), i) : align_item<RT>(base_row<RT>(i), i);
}
template <class RT> DEVICE constexpr int row_vec_item(int i) {
  static_assert(ww::parts<RT>() == 2, "tiles of one-byte elements have no vectors");
  return RT::is_row ? align_item<RT>(base_col<RT>(i), i) : ortho_item<RT>(base_col<RT>(i), i);
}

// The element of a vector that item i of this lane holds; naive: may lie beyond the length in the last word.
template <class RV> DEVICE constexpr int vector_element(int lane, int i) {
  if constexpr (RV::is_naive) return 32 * i + lane;
  else if constexpr (RV::is_ortho) return 8 * i + lane / 4;
  else return 8 * (i / 2) + 2 * (lane % 4) + i % 2;
}

}  // namespace detail
}  // namespace kittens
