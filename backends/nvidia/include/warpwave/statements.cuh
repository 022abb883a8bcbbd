// Operations of ThunderKittens on parts of larger tiles, as macros that stand where upstream has functions:
// warpgroup::mma_ABt(d, a, b), tma::load_async(tile, map, coord(row, column), semaphore), warp::store_panel(tile, ...).
//
// Functions they are not, for one reason: how the compiler numbers and orders registers depends on which variables a
// kernel declares, so that moving these into functions gives other machine code than was measured. Each macro declares
// what it needs in a block of its own. Only generated code includes this file, behind all others.
#pragma once
#include "memory.cuh"
#include "ptx/matrix_moves.cuh"
#include "ptx/wgmma.cuh"
#include "rows.cuh"
#include "scopes.cuh"
#include "tensor_maps.cuh"

namespace ww::tk {

// Tiles one after another, from byte `At` of shared memory on. tiles[i] is a number that knows its tile's type.
template <class ST_, int At> struct shared_tiles {
  using ST = ST_;
  enum class element : int {};
  DEVICE friend shared_tiles tiles_of(element) { return {}; }
  DEVICE element operator[](int i) const { return (element)i; }
  DEVICE static u32 address(u32 i) { return ptx::shared_address(smem) + At + (int)i * (int)sizeof(ST); }
};
// Tiles `Stride` bytes apart by their addresses.
template <class ST_, int At, int Stride> struct shared_buffers {
  using ST = ST_;
  enum class element : u32 {};
  DEVICE friend shared_buffers tiles_of(element) { return {}; }
  DEVICE element operator[](int i) const { return (element)(ptx::shared_address(smem) + At + i * Stride); }
  DEVICE static u32 address(u32 at) { return at; }
};
template <class E> using tile_of = typename decltype(tiles_of(E()))::ST;
template <class E> DEVICE u32 address_of(E tile) { return decltype(tiles_of(tile))::address((u32)tile); }

// -- products of a warpgroup -------------------------------------------------------------------------------------

template <class T> struct format_of;
template <> struct format_of<f16> { static constexpr ptx::Format value = ptx::F16; };
template <> struct format_of<bf16> { static constexpr ptx::Format value = ptx::BF16; };
template <> struct format_of<fp8e4m3> { static constexpr ptx::Format value = ptx::E4M3; };
template <> struct format_of<fp8e5m2> { static constexpr ptx::Format value = ptx::E5M2; };
template <> struct format_of<signed char> { static constexpr ptx::Format value = ptx::S8; };

// Of a tile's beginning. The leading offset is used only where k runs across the rows of the panels.
template <class ST, bool KMajor> DEVICE u64 panels_at(u32 address) {
  constexpr int bytes = ST::swizzle_bytes;
  return ptx::wgmma_descriptor(address, KMajor ? 16 : ST::underlying_rows * bytes, 8 * bytes, bytes);
}
// From there to a place (row of A, column of B) and a step of k, in units of 16 bytes.
template <class ST, bool KMajor> DEVICE u64 panel_offset(int place, int step) {
  constexpr int bytes = ST::swizzle_bytes, panel = ST::underlying_rows * bytes, size = sizeof(typename ST::T);
  if constexpr (KMajor) return (u64)((place * bytes + step / (bytes / 32) * panel + step % (bytes / 32) * 32) >> 4);
  else return (u64)((place / (bytes / size) * panel + step * (32 / size * bytes)) >> 4);
}

// How a product D (+)= op(A) op(B) is made of instructions. Warpgroups are numbered along the rows, then the columns.
template <class D, class A, bool TransA, class B, bool TransB> struct product {
  static constexpr int columns = 2 * D::width, across = D::cols / columns, down = D::rows / 16;
  static constexpr int steps = (TransB ? B::cols : B::rows) * (int)sizeof(typename B::T) / 32;
  static constexpr int row_parts = (TransA ? A::cols : A::rows) / (64 * down);
  static constexpr int column_parts = (TransB ? B::rows : B::cols) / D::cols;
  // A warpgroup's number is made the same for all lanes, as the compiler can see.
  DEVICE static int row(int warp) {
    if constexpr (row_parts == 1) return 0;
    else return __shfl_sync(~0u, warp >> 2, 0) % row_parts * (64 * down);
  }
  DEVICE static int column(int warp) {
    if constexpr (column_parts == 1) return 0;
    else if constexpr (row_parts == 1) return __shfl_sync(~0u, warp >> 2, 0) % column_parts * D::cols;
    else return warp / (4 * row_parts) % column_parts * D::cols;
  }
};

template <class D, class A, int Rows, class B, bool TransB> struct held_product {
  static constexpr int columns = 2 * D::width, across = D::cols / columns, down = D::rows / 16;
  static constexpr int vectors = A::items / 8, steps = vectors / down;
  static constexpr int column_parts = (TransB ? B::rows : B::cols) / D::cols;
  static constexpr ptx::Format format = format_of<typename A::T>::value;
  DEVICE static int column(int warp) {
    if constexpr (column_parts == 1) return 0;
    else if constexpr (Rows == 1) return __shfl_sync(~0u, warp >> 2, 0) % column_parts * D::cols;
    else return warp / (4 * Rows) % column_parts * D::cols;
  }
};

struct warpgroup : kittens::warpgroup {
  DEVICE static void in_steps() {}
};

#define WW_PIN(d) ww::pin(d);
#define WW_NO_PIN(d)
// Both operands in shared memory.
#define WW_PRODUCT(d, a, ta, b, tb, pinned, accumulated) \
  in_steps(); \
  { \
    using D_ = decltype(d); \
    using A_ = ww::tk::tile_of<decltype(a)>; \
    using B_ = ww::tk::tile_of<decltype(b)>; \
    using P_ = ww::tk::product<D_, A_, ta, B_, tb>; \
    const ww::u64 a_panels_ = ww::tk::panels_at<A_, !ta>(ww::tk::address_of(a)); \
    const int a_row_ = P_::row(warp_id); \
    const ww::u64 b_panels_ = ww::tk::panels_at<B_, tb>(ww::tk::address_of(b)); \
    const int b_col_ = P_::column(warp_id); \
    pinned(d) \
    ww::ptx::wgmma_fence(); \
    EACH(s_, P_::steps) { \
      EACH(m_, P_::down) { \
        EACH(n_, P_::across) { \
          ww::ptx::wgmma<ww::tk::format_of<A_::T>::value, ww::tk::format_of<B_::T>::value, ta, !tb>( \
              d.v[m_ * P_::across + n_].e, a_panels_ + ww::tk::panel_offset<A_, !ta>(a_row_ + m_ * 64, s_), \
              b_panels_ + ww::tk::panel_offset<B_, tb>(b_col_ + n_ * P_::columns, s_), accumulated); \
        } \
      } \
    } \
    ww::ptx::wgmma_commit(); \
  }
// The first one in registers, in the layout of an operand; `rows` warpgroups lie along the rows.
#define WW_PRODUCT_HELD(d, a, b, tb, rows, pinned, accumulated) \
  in_steps(); \
  { \
    using D_ = decltype(d); \
    using B_ = ww::tk::tile_of<decltype(b)>; \
    using P_ = ww::tk::held_product<D_, decltype(a), rows, B_, tb>; \
    ww::vec<ww::u32, 4> a_[P_::vectors]; \
    EACH(i, P_::vectors) { \
      a_[i] = ww::bits<ww::vec<ww::u32, 4>>(a.v[i]); \
    } \
    const ww::u64 b_panels_ = ww::tk::panels_at<B_, tb>(ww::tk::address_of(b)); \
    const int b_col_ = P_::column(warp_id); \
    pinned(d) \
    ww::ptx::wgmma_fence(); \
    EACH(s_, P_::steps) { \
      EACH(m_, P_::down) { \
        EACH(n_, P_::across) { \
          ww::ptx::wgmma<P_::format, ww::tk::format_of<B_::T>::value, !tb>( \
              d.v[m_ * P_::across + n_].e, a_[m_ * P_::steps + s_].e, \
              b_panels_ + ww::tk::panel_offset<B_, tb>(b_col_ + n_ * P_::columns, s_), accumulated); \
        } \
      } \
    } \
    ww::ptx::wgmma_commit(); \
  }

// d += op(a) op(b); with `_in_flight` it adds to a product that is not complete, whose registers stay as they are.
#define mma_AB(d, a, b) WW_PRODUCT(d, a, false, b, false, WW_PIN, true)
#define mma_ABt(d, a, b) WW_PRODUCT(d, a, false, b, true, WW_PIN, true)
#define mma_AtB(d, a, b) WW_PRODUCT(d, a, true, b, false, WW_PIN, true)
#define mma_AtBt(d, a, b) WW_PRODUCT(d, a, true, b, true, WW_PIN, true)
#define mma_AB_in_flight(d, a, b) WW_PRODUCT(d, a, false, b, false, WW_NO_PIN, true)
#define mma_ABt_in_flight(d, a, b) WW_PRODUCT(d, a, false, b, true, WW_NO_PIN, true)
#define mma_AtB_in_flight(d, a, b) WW_PRODUCT(d, a, true, b, false, WW_NO_PIN, true)
#define mma_AtBt_in_flight(d, a, b) WW_PRODUCT(d, a, true, b, true, WW_NO_PIN, true)
// d = op(a) op(b).
#define mm_AB(d, a, b) WW_PRODUCT(d, a, false, b, false, WW_NO_PIN, s_ > 0)
#define mm_ABt(d, a, b) WW_PRODUCT(d, a, false, b, true, WW_NO_PIN, s_ > 0)
#define mm_AtB(d, a, b) WW_PRODUCT(d, a, true, b, false, WW_NO_PIN, s_ > 0)
#define mm_AtBt(d, a, b) WW_PRODUCT(d, a, true, b, true, WW_NO_PIN, s_ > 0)
// The same with a in registers, behind which comes how many warpgroups lie along the rows.
#define mma_rAB(d, a, rows, b) WW_PRODUCT_HELD(d, a, b, false, rows, WW_PIN, true)
#define mma_rABt(d, a, rows, b) WW_PRODUCT_HELD(d, a, b, true, rows, WW_PIN, true)
#define mma_rAB_in_flight(d, a, rows, b) WW_PRODUCT_HELD(d, a, b, false, rows, WW_NO_PIN, true)
#define mma_rABt_in_flight(d, a, rows, b) WW_PRODUCT_HELD(d, a, b, true, rows, WW_NO_PIN, true)
#define mm_rAB(d, a, rows, b) WW_PRODUCT_HELD(d, a, b, false, rows, WW_NO_PIN, s_ > 0)
#define mm_rABt(d, a, rows, b) WW_PRODUCT_HELD(d, a, b, true, rows, WW_NO_PIN, s_ > 0)

struct warp : kittens::warp {
  DEVICE static void in_columns() {}
};
namespace tma {
DEVICE void in_boxes() {}
}  // namespace tma

}  // namespace ww::tk

// -- copies by the bulk copy engine --------------------------------------------------------------------------------
// A place is coord(...) or element(...): the coordinates of a tensor's outer axes, then row and column, which count
// tiles or elements. The map has them the other way round.

#define WW_FIFTH(a, b, c, d, e, ...) e
#define WW_BY_COUNT(name, ...) WW_FIFTH(__VA_ARGS__, name##_4, name##_3, name##_2)(__VA_ARGS__)
#define WW_ROW_2(r, c) r
#define WW_ROW_3(x, r, c) r
#define WW_ROW_4(x, y, r, c) r
#define WW_COL_2(r, c) c
#define WW_COL_3(x, r, c) c
#define WW_COL_4(x, y, r, c) c
#define WW_OUTER_2(r, c)
#define WW_OUTER_3(x, r, c) , ww::scaled_coordinate(x, 1)
#define WW_OUTER_4(x, y, r, c) , ww::scaled_coordinate(y, 1), ww::scaled_coordinate(x, 1)
// Not used; but declared by the copies that were measured, so that the compiler's numbering depends on it.
#define WW_INSIDE_2(r, c) const long element_ = row_ + (long)col_;
#define WW_INSIDE_3(x, r, c) const bool inside_ = x >= 0; WW_ELEMENT
#define WW_INSIDE_4(x, y, r, c) const bool inside_ = x >= 0 && y >= 0; WW_ELEMENT
#define WW_ELEMENT const long element_ = inside_ ? row_ + (long)col_ : 0L;

#define WW_ROW_coord(...) ww::scaled_coordinate(WW_BY_COUNT(WW_ROW, __VA_ARGS__), ST_::rows)
#define WW_COL_coord(...) ww::scaled_coordinate(WW_BY_COUNT(WW_COL, __VA_ARGS__), ST_::cols)
#define WW_OUTER_coord(...) WW_BY_COUNT(WW_OUTER, __VA_ARGS__)
#define WW_INSIDE_coord(...) WW_BY_COUNT(WW_INSIDE, __VA_ARGS__)
#define WW_ROW_element(...) ww::scaled_coordinate(WW_BY_COUNT(WW_ROW, __VA_ARGS__), 1)
#define WW_COL_element(...) ww::scaled_coordinate(WW_BY_COUNT(WW_COL, __VA_ARGS__), 1)
#define WW_OUTER_element(...) WW_BY_COUNT(WW_OUTER, __VA_ARGS__)
#define WW_INSIDE_element(...) WW_BY_COUNT(WW_INSIDE, __VA_ARGS__)

// One instruction for each panel of the swizzle and each 256 rows; what lies outside the tensor is zero, also columns,
// whatever the tensor's width.
#define load_async(dst, src, place, arrived) \
  in_boxes(); \
  { \
    using ST_ = ww::tk::tile_of<decltype(dst)>; \
    const int row_ = WW_ROW_##place; \
    const int col_ = WW_COL_##place; \
    WW_INSIDE_##place \
    EACH(panel_, ST_::cols * (int)sizeof(ST_::T) / ST_::swizzle_bytes) { \
      EACH(part_, (ST_::rows + 255) / 256) { \
        const int place_[] = {col_ + panel_ * (ST_::swizzle_bytes / (int)sizeof(ST_::T)), \
                              row_ + part_ * 256 WW_OUTER_##place}; \
        ww::ptx::tensor_load( \
            ww::tk::address_of(dst) + panel_ * (ST_::rows * ST_::swizzle_bytes) + (part_ * 256) * ST_::swizzle_bytes, \
            &src, (ww::u32)arrived, place_); \
      } \
    } \
  }
// A tile of one panel and up to 256 rows, committed as a group of its own; what lies outside the tensor is not written.
// The writers have met at a barrier, each after a fence for the asynchronous proxy.
#define store_async(dst, src, place) \
  in_boxes(); \
  { \
    using ST_ = ww::tk::tile_of<decltype(src)>; \
    static_assert(ST_::cols * sizeof(ST_::T) == ST_::swizzle_bytes && ST_::rows <= 256, "one box"); \
    const int place_[] = {WW_PLAIN_COL_##place, WW_PLAIN_ROW_##place WW_OUTER_##place}; \
    ww::ptx::tensor_store(&dst, ww::tk::address_of(src), place_); \
    ww::ptx::bulk_commit(); \
  }
#define WW_PLAIN_ROW_element(...) WW_BY_COUNT(WW_ROW, __VA_ARGS__)
#define WW_PLAIN_COL_element(...) WW_BY_COUNT(WW_COL, __VA_ARGS__)

// Columns `panel` * the tile's and on, of the 16 rows `block` of a 16-bit register tile, into a tile of one panel.
#define store_panel(dst, src, block, panel) \
  in_columns(); \
  EACH(q_, ww::tk::tile_of<decltype(dst)>::cols / 16) { \
    using ST_ = ww::tk::tile_of<decltype(dst)>; \
    const int first_ = (block) * (decltype(src)::cols / 2) + (panel) * (ST_::cols / 2) + q_ * 8; \
    ww::u32 x_[4]; \
    EACH(i_, 4) \
      x_[i_] = ww::bits<ww::u32>(ww::vec<ww::u16, 2>{ \
          ww::bits<ww::u16>(src.get(first_ + i_ * 2)), ww::bits<ww::u16>(src.get(first_ + i_ * 2 + 1))}); \
    const ww::u32 at_ = ((lane & 7) + (lane >> 3 & 1) * 8) * ST_::swizzle_bytes + q_ * 32 + (lane >> 4) * 16; \
    ww::ptx::stmatrix(ww::tk::address_of(dst) + (at_ ^ ww::swizzle_of<ST_>(lane)), x_); \
  }
