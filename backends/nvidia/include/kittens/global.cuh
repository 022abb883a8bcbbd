// Coordinates, and global tensors as a kernel sees them: dense, row-major, four axes.
#pragma once
#include "../warpwave/ptx/tma.cuh"
#include "shared.cuh"

namespace kittens {

namespace ducks {
namespace gl { struct identifier {}; }
}  // namespace ducks

// Counted in tiles or vectors of type T_, or in elements without one; shorter lists fill from the right.
template <class T_ = ducks::default_type> struct coord {
  using BASE = T_;
  int b, d, r, c;
  DEVICE coord(int b_, int d_, int r_, int c_) : b(b_), d(d_), r(r_), c(c_) {}
  DEVICE coord(int d_, int r_, int c_) : b(0), d(d_), r(r_), c(c_) {}
  DEVICE coord(int r_, int c_) : b(0), d(0), r(r_), c(c_) {}
  DEVICE coord(int c_) : b(0), d(0), r(0), c(c_) {}
  DEVICE coord() : b(0), d(0), r(0), c(0) {}
  template <class U> DEVICE coord(const coord<U> &o) : b(o.b), d(o.d), r(o.r), c(o.c) {}
  template <int Axis> DEVICE int dim() const { return Axis == 0 ? b : Axis == 1 ? d : Axis == 2 ? r : c; }

  // In elements: tiles extend along RowAxis and the columns, vectors along the columns.
  template <int RowAxis, int ColAxis> DEVICE coord<> unit_coord() const {
    static_assert(ColAxis == 3, "columns are the last axis");
    if constexpr (requires { BASE::rows; })
      return {b * (RowAxis == 0 ? BASE::rows : 1), d * (RowAxis == 1 ? BASE::rows : 1),
              r * (RowAxis == 2 ? BASE::rows : 1), c * BASE::cols};
    else if constexpr (requires { BASE::length; }) return {b, d, r, c * BASE::length};
    else return {b, d, r, c};
  }
};

// The axes of a tensor; -1 where an extent is known at run time only. `maps` are the tensor maps of the tile types
// that TMA moves, in the order of the template arguments.
template <class T, int B, int D, int R, int C, class... Tiles> struct gl {
  using identifier = ducks::gl::identifier;
  using dtype = T;
  T *raw_ptr;
  int extents[4];
  const ww::ptx::tensor_map *maps[sizeof...(Tiles) + 1];

  DEVICE int batch() const { return B > 0 ? B : extents[0]; }
  DEVICE int depth() const { return D > 0 ? D : extents[1]; }
  DEVICE int rows() const { return R > 0 ? R : extents[2]; }
  DEVICE int cols() const { return C > 0 ? C : extents[3]; }
  template <int Axis> DEVICE int shape() const {
    return Axis == 0 ? batch() : Axis == 1 ? depth() : Axis == 2 ? rows() : cols();
  }
  template <int Axis> DEVICE long stride() const {
    return Axis == 0 ? (long)depth() * rows() * cols() : Axis == 1 ? (long)rows() * cols() : Axis == 2 ? cols() : 1;
  }
  DEVICE T &operator[](const coord<> &at) const {
    return raw_ptr[at.b * stride<0>() + at.d * stride<1>() + at.r * stride<2>() + at.c];
  }
  template <class Tile, int Axis = 2> DEVICE const ww::ptx::tensor_map *get_tma() const {
    constexpr bool found[] = {base_types::same<Tile, Tiles>..., true};
    constexpr int at = [] {
      int i = 0;
      while (!found[i]) ++i;
      return i;
    }();
    static_assert(at < (int)sizeof...(Tiles), "the tensor has no map for tiles of this type");
    return maps[at];
  }
  template <class Tile, int Axis = 2> DEVICE void prefetch_tma() const { ww::ptx::prefetch_map(get_tma<Tile, Axis>()); }
};

}  // namespace kittens
