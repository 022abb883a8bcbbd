// Copies between element types and between layouts, transposes.
#pragma once
#include "../warpwave/ptx/matrix_moves.cuh"
#include "maps.cuh"

namespace kittens {

namespace detail {

// Four values to one-byte codes in one register, in order.
template <class To> DEVICE u32 encode_four(float a, float b, float c, float d) {
  return (u32)ww::bits<u8>(To(a)) | (u32)ww::bits<u8>(To(b)) << 8 | (u32)ww::bits<u8>(To(c)) << 16 |
         (u32)ww::bits<u8>(To(d)) << 24;
}
DEVICE float of_lane(float x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }

// Two 16-column base tiles side by side hold the elements of one 32-column base tile in other lanes of the quad: lane
// q needs columns 4 q + {0, 1, 2, 3}, which in the wider types are pairs of lanes 2 (q % 2) and 2 (q % 2) + 1.
template <class To, class From> DEVICE void to_bytes(To &dst, const From &src) {
  const int lane = threadIdx.x % 32, q = lane % 4, first = lane - q + 2 * (q % 2);
  EACH(i, To::height) EACH(j, To::width) EACH(k, 4) {
    // data[k] covers columns 16 (k / 2) on of the 32: base tile 2 j + k / 2, halves data[k % 2] and data[k % 2 + 2].
    auto &base = src.tiles[i][2 * j + k / 2];
    float v[4];
    EACH(half, 2) EACH(e, 2) {
      const float left = (float)ww::packed_get<typename From::T>(base.data[k % 2], e);
      const float right = (float)ww::packed_get<typename From::T>(base.data[k % 2 + 2], e);
      const float from_left = of_lane(left, first + half), from_right = of_lane(right, first + half);
      v[2 * half + e] = q < 2 ? from_left : from_right;
    }
    dst.tiles[i][j].data[k].__x = encode_four<typename To::T>(v[0], v[1], v[2], v[3]);
  }
}

// The other way: lane q of a wider base tile needs columns 2 q + {0, 1} and 8 more, bytes 2 (q % 2) on of lanes q / 2
// and q / 2 + 2.
template <class To, class From> DEVICE void from_bytes(To &dst, const From &src) {
  const int lane = threadIdx.x % 32, q = lane % 4;
  EACH(i, From::height) EACH(j, From::width) EACH(k, 4) {
    const u32 word = src.tiles[i][j].data[k].__x;
    EACH(half, 2) {
      const u32 there = __shfl_sync(0xffffffffu, word, lane - q + q / 2 + 2 * half) >> 16 * (q % 2);
      auto &pair = dst.tiles[i][2 * j + k / 2].data[k % 2 + 2 * half];
      EACH(e, 2)
        ww::packed_set(pair, e,
                       base_types::convert_to<typename To::T>((float)ww::bits<typename From::T>((u8)(there >> 8 * e))));
    }
  }
}

}  // namespace detail

template <int N> struct register_conversions {
  template <class T, class U, int R, int C, class L>
  DEVICE static void copy(rt<T, R, C, L> &dst, const rt<U, R, C, L> &src) {
    if constexpr (sizeof(T) == 1 && sizeof(U) > 1) detail::to_bytes(dst, src);
    else if constexpr (sizeof(T) > 1 && sizeof(U) == 1) detail::from_bytes(dst, src);
    else EACH(i, (rt<T, R, C, L>::elements_per_thread))
      ww::set(dst, i, base_types::convert_to<T>(ww::get(src, i)));
  }
  template <detail::registers R> DEVICE static void copy(R &dst, const typename R::T &value) { dst = value; }

  // Another layout: each element from a lane that has it.
  template <class T, class U, size_t Length, class L, class M>
  DEVICE static void copy(rv<T, Length, L> &dst, const rv<U, Length, M> &src) {
    using D = rv<T, Length, L>;
    using S = rv<U, Length, M>;
    const int lane = threadIdx.x % 32;
    if constexpr (base_types::same<L, M>) {
      EACH(i, ww::items<D>()) ww::set(dst, i, base_types::convert_to<T>(ww::get(src, i)));
    } else {
      EACH(i, ww::items<D>()) {
        // The element wanted lies in the item of S that covers it; which item may differ from lane to lane.
        const int element = detail::vector_element<D>(lane, i);
        T found{};
        EACH(k, ww::items<S>()) {
          if (!covers<D, S>(i, k)) continue;
          const float x = detail::of_lane((float)ww::get(src, k), lane_of<S>(element));
          if (item_of<S>(element) == k) found = base_types::convert_to<T>(x);
        }
        ww::set(dst, i, found);
      }
    }
  }

  // Row to column layout and back, for 16-bit elements: each 8x8 matrix transposed within the warp, and the two
  // off-diagonal ones of a base tile exchanged by name.
  template <class T, int R, int C, class L, class M>
  DEVICE static void swap_layout(rt<T, R, C, L> &dst, const rt<T, R, C, M> &src) {
    static_assert(sizeof(T) == 2 && !base_types::same<L, M>, "swap_layout is for 16-bit tiles and changes the layout");
    EACH(i, (rt<T, R, C, L>::height)) EACH(j, (rt<T, R, C, L>::width)) EACH(k, 4) {
      const u32 moved = ww::ptx::movmatrix(ww::bits<u32>(src.tiles[i][j].data[k % 2 * 2 + k / 2]));
      dst.tiles[i][j].data[k] = ww::bits<typename rt<T, R, C, L>::dtype>(moved);
    }
  }
  template <ducks::rt::all R>
  DEVICE static auto &swap_layout_inplace(R &tile) {
    using Other = rt<typename R::T, R::rows, R::cols, base_types::either<R::is_row, col_l, row_l>>;
    Other swapped;
    swap_layout(swapped, tile);
    Other &there = *reinterpret_cast<Other *>(&tile);
    there = swapped;
    return there;
  }
  template <class T, int R, int C, class L>
  DEVICE static void transpose_sep(rt<T, R, C, L> &dst, const rt<T, C, R, L> &src) {
    static_assert(sizeof(T) == 2, "transposes are for 16-bit tiles");
    EACH(i, (rt<T, R, C, L>::height)) EACH(j, (rt<T, R, C, L>::width)) EACH(k, 4) {
      const u32 moved = ww::ptx::movmatrix(ww::bits<u32>(src.tiles[j][i].data[k % 2 * 2 + k / 2]));
      dst.tiles[i][j].data[k] = ww::bits<typename rt<T, R, C, L>::dtype>(moved);
    }
  }
  template <class T, int R, class L> DEVICE static void transpose_inplace(rt<T, R, R, L> &tile) {
    const rt<T, R, R, L> before = tile;
    transpose_sep(tile, before);
  }
  template <int Rows, class T, int R, int C, class L>
  DEVICE static rt<T, Rows, C, L> &subtile_inplace(rt<T, R, C, L> &src, int i) {
    static_assert(R % Rows == 0, "row blocks divide the tile");
    return reinterpret_cast<rt<T, Rows, C, L> &>(src.tiles[i * (Rows / (rt<T, R, C, L>::tile_size_row))]);
  }

 private:
  // Where element e of a vector lies: the item, and the first lane that has it.
  template <class V> DEVICE static int item_of(int e) {
    return V::is_naive ? e / 32 : V::is_ortho ? e / 8 : e / 8 * 2 + e % 2;
  }
  template <class V> DEVICE static int lane_of(int e) {
    return V::is_naive ? e % 32 : V::is_ortho ? e % 8 * 4 : e % 8 / 2;
  }
  // Whether item i of D can want something of item k of S: both cover a range of 8 or 32 elements.
  template <class D, class S> DEVICE static bool covers(int i, int k) {
    const int first = D::is_naive ? 32 * i : D::is_ortho ? 8 * i : 8 * (i / 2), size = D::is_naive ? 32 : 8;
    const int start = S::is_naive ? 32 * k : S::is_ortho ? 8 * k : 8 * (k / 2), extent = S::is_naive ? 32 : 8;
    return first < start + extent && start < first + size;
  }
};

}  // namespace kittens
