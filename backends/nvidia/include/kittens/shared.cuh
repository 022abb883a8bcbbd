// Shared tiles and vectors. A swizzled tile consists of panels of `swizzle_bytes` by all rows, one after another; in
// a panel the 16-byte chunks of a row are permuted by xor with the row, as TMA and wgmma do it.
#pragma once
#include "register.cuh"

namespace kittens {

namespace ducks {
namespace st { struct identifier {}; }
namespace sv { struct identifier {}; }
}  // namespace ducks

namespace detail {
// The widest panel that divides a row of `bytes`; two 32-byte halves of an odd multiple stay apart.
DEVICE constexpr int default_swizzle(int bytes, int size) {
  if (size == 4) return bytes % 128 == 0 ? 128 : 64;
  return bytes % 128 == 0 ? 128 : bytes % 64 == 0 ? 64 : 32;
}
}  // namespace detail

template <class T_, size_t Length> struct alignas(128) sv {
  using identifier = ducks::sv::identifier;
  using T = T_;
  using T2 = base_types::packed<T>;
  using dtype = T;
  static constexpr int length = Length, tiles = Length / 16;
  static_assert(length % 16 == 0, "the length of a shared vector is a multiple of 16");
  static constexpr int num_alloc_elements = (Length * sizeof(T) + 127) / 128 * 128 / sizeof(T);
  dtype data[num_alloc_elements];

  DEVICE dtype &operator[](size_t i) { return data[i]; }
  DEVICE const dtype &operator[](size_t i) const { return data[i]; }
  template <size_t L> using subvec_t = sv<T, L>;
  template <size_t L> DEVICE sv<T, L> &subvec(int i) { return *reinterpret_cast<sv<T, L> *>(&data[i * L]); }
};

template <class ST, int Rows, int Cols> struct st_subtile;

template <class T_, int Rows, int Cols, bool Swizzle = true, int SwizzleBytes = 0> struct alignas(128) st {
  using identifier = ducks::st::identifier;
  using T = T_;
  using T2 = base_types::packed<T>;
  using dtype = T;
  static constexpr bool swizzle = Swizzle;
  static constexpr int rows = Rows, cols = Cols, underlying_rows = Rows, underlying_cols = Cols;
  static constexpr int height = Rows / TILE_ROW_DIM<T>, width = Cols / TILE_COL_DIM<T>;
  static constexpr int num_elements = Rows * Cols, underlying_num_elements = num_elements;
  static constexpr int swizzle_bytes =
      SwizzleBytes ? SwizzleBytes : detail::default_swizzle(Cols * sizeof(T), sizeof(T));
  static_assert(cols % TILE_COL_DIM<T> == 0 && (rows % 16 == 0 || !swizzle), "sizes are multiples of the base tile");
  static_assert(!swizzle || cols * sizeof(T) % swizzle_bytes == 0, "the panel width divides the row");
  using col_vec = sv<T, rows>;
  using row_vec = sv<T, cols>;
  dtype data[rows * cols];

  // Bytes from the tile's start, before the swizzle.
  DEVICE static constexpr u32 offset(int r, int c) {
    constexpr int panel = swizzle_bytes / sizeof(T);
    if constexpr (!swizzle) return (r * cols + c) * sizeof(T);
    else return ((c / panel) * (rows * panel) + r * panel + c % panel) * sizeof(T);
  }
  DEVICE static constexpr u32 swizzled(u32 address) {
    if constexpr (!swizzle) return address;
    else return address ^ ((address % (8 * swizzle_bytes)) >> 7) << 4;
  }
  DEVICE static u32 idx(u32 base, int2 rc) { return swizzled(base + offset(rc.x, rc.y)); }
  DEVICE static T *idx(T *base, int2 rc) {
    u64 plain = (u64)base + offset(rc.x, rc.y);
    return (T *)(plain ^ (swizzled((u32)plain) ^ (u32)plain));
  }
  DEVICE dtype &operator[](const int2 &rc) { return *idx(data, rc); }
  DEVICE const dtype &operator[](const int2 &rc) const { return *idx((T *)data, rc); }
  DEVICE dtype &operator[](int i) { return data[i]; }
  DEVICE const dtype &operator[](int i) const { return data[i]; }

  template <int R, int C> DEVICE st_subtile<st, R, C> subtile(int2 rc) { return st_subtile<st, R, C>(*this, rc); }
  // Whole panels, all rows.
  template <int C> DEVICE st<T, Rows, C, Swizzle, swizzle_bytes> &subtile(int i) {
    static_assert(C * sizeof(T) % swizzle_bytes == 0, "column blocks are whole panels");
    return *reinterpret_cast<st<T, Rows, C, Swizzle, swizzle_bytes> *>(&data[Rows * C * i]);
  }
};

// A window of a tile, in the tile's own layout.
template <class ST_, int Rows, int Cols> struct st_subtile {
  using identifier = ducks::st::identifier;
  using ST = ST_;
  using T = typename ST::T;
  using T2 = typename ST::T2;
  using dtype = T;
  static constexpr bool swizzle = ST::swizzle;
  static constexpr int rows = Rows, cols = Cols, num_elements = Rows * Cols, swizzle_bytes = ST::swizzle_bytes;
  static constexpr int height = Rows / TILE_ROW_DIM<T>, width = Cols / TILE_COL_DIM<T>;
  static constexpr int underlying_rows = ST::underlying_rows, underlying_cols = ST::underlying_cols;
  static_assert(rows % TILE_ROW_DIM<T> == 0 && cols % TILE_COL_DIM<T> == 0, "sizes are multiples of the base tile");
  static_assert(ST::rows % rows == 0 && ST::cols % cols == 0, "the window divides the tile");
  using col_vec = sv<T, rows>;
  using row_vec = sv<T, cols>;
  dtype *data;
  int row_offset, col_offset;

  DEVICE st_subtile(ST &tile, int2 rc) : data(tile.data), row_offset(rc.x * rows), col_offset(rc.y * cols) {}
  DEVICE u32 idx(u32 base, int2 rc) const { return ST::idx(base, {rc.x + row_offset, rc.y + col_offset}); }
  DEVICE T *idx(T *base, int2 rc) const { return ST::idx(base, {rc.x + row_offset, rc.y + col_offset}); }
  DEVICE dtype &operator[](const int2 &rc) { return *idx(data, rc); }
  DEVICE const dtype &operator[](const int2 &rc) const { return *idx(data, rc); }
};

#define KITTENS_SHARED_ALIAS(T, suffix) \
  template <int R, int C, bool S = true, int B = 0> using st_##suffix = st<T, R, C, S, B>;
KITTENS_SHARED_ALIAS(bf16, bf)
KITTENS_SHARED_ALIAS(half, hf)
KITTENS_SHARED_ALIAS(float, fl)
KITTENS_SHARED_ALIAS(fp8e4m3, fp8e4m3)
KITTENS_SHARED_ALIAS(fp8e5m2, fp8e5m2)
#undef KITTENS_SHARED_ALIAS
template <size_t N> using sv_bf = sv<bf16, N>;
template <size_t N> using sv_hf = sv<half, N>;
template <size_t N> using sv_fl = sv<float, N>;

namespace ducks {
namespace st {
template <class S> concept all = base_types::same<typename S::identifier, identifier>;
}
namespace sv {
template <class S> concept all = base_types::same<typename S::identifier, identifier>;
}
}  // namespace ducks

// Hands out dynamic shared memory from its start; each object begins at a multiple of Align bytes.
template <int Align = 1024> struct shared_allocator {
  int *ptr;
  DEVICE explicit shared_allocator(int *start) : ptr(start) {}
  template <class A, size_t... Dims> struct array_of { using type = A; };
  template <class A, size_t First, size_t... Rest> struct array_of<A, First, Rest...> {
    using type = typename array_of<A, Rest...>::type[First];
  };
  template <class A, size_t... Dims> DEVICE typename array_of<A, Dims...>::type &allocate() {
    return allocate<Align, A, Dims...>();
  }
  template <int At, class A, size_t... Dims> DEVICE typename array_of<A, Dims...>::type &allocate() {
    using type = typename array_of<A, Dims...>::type;
    u64 start = ((u64)ptr + At - 1) / At * At;
    ptr = (int *)(start + sizeof(type));
    return *(type *)start;
  }
};
using tma_allocator = shared_allocator<1024>;
using tma_swizzle_allocator = shared_allocator<1024>;

}  // namespace kittens
