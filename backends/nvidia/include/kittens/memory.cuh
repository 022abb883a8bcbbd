// Moves between registers, shared and global memory by all threads of a group. The group's tile has the rows of its
// warps' tiles one after another. Global accesses are bounded: what is outside reads as zero and is not written.
#pragma once
#include "conversions.cuh"
#include "global.cuh"
#include "semaphore.cuh"

namespace kittens {

namespace detail {

// One base tile by ldmatrix: matrix m of a row layout has rows 8 (m % 2) and 16-byte column 8 (m / 2) on, of a column
// layout the other way round. One-byte elements move as pairs.
template <class RT, class ST> DEVICE u32 matrix_address(const ST &st, u32 start, int row, int col, int lane) {
  constexpr int half = RT::tile_size_col / 2;
  const int m = lane / 8, r = lane % 8;
  const int down = RT::is_row ? m % 2 : m / 2, right = RT::is_row ? m / 2 : m % 2;
  return st.idx(start, {row + r + 8 * down, col + half * right});
}

template <class RT, class ST> DEVICE void from_shared(RT &dst, const ST &src, int first) {
  const int lane = threadIdx.x % 32;
  const u32 start = ww::ptx::shared_address(&src.data[0]);
  EACH(i, RT::height) EACH(j, RT::width) {
    const int row = first + 16 * i, col = RT::tile_size_col * j;
    if constexpr (sizeof(typename RT::T) < 4) {
      u32 x[4];
      ww::ptx::ldmatrix<!RT::is_row>(x, matrix_address<RT>(src, start, row, col, lane));
      EACH(k, 4) dst.tiles[i][j].data[k] = ww::bits<typename RT::dtype>(x[k]);
    } else {
      EACH(k, 4) {
        auto &pair = dst.tiles[i][j].data[k];
        if constexpr (RT::is_row) {
          const int2 at = {row + lane / 4 + 8 * (k % 2), col + 2 * (lane % 4) + 8 * (k / 2)};
          pair = *(const typename RT::dtype *)src.idx((typename RT::T *)src.data, at);
        } else {
          const int2 at = {row + 2 * (lane % 4) + 8 * (k / 2), col + lane / 4 + 8 * (k % 2)};
          pair.x = *src.idx((typename RT::T *)src.data, at);
          pair.y = *src.idx((typename RT::T *)src.data, {at.x + 1, at.y});
        }
      }
    }
  }
}

#if __CUDA_ARCH__ >= 900
constexpr bool has_stmatrix = true;
#else
constexpr bool has_stmatrix = false;
#endif

template <class Base, class ST> DEVICE void by_elements(ST &dst, const Base &base, int row, int col, int lane) {
  constexpr int n = ww::parts<Base>();
  EACH(k, 4) {
    const auto &packed = base.data[k];
    if constexpr (Base::is_row) {
      const int2 at = {row + lane / 4 + 8 * (k % 2), col + n * (lane % 4) + 4 * n * (k / 2)};
      *(typename Base::dtype *)dst.idx(dst.data, at) = packed;
    } else {
      const int2 at = {row + 2 * (lane % 4) + 8 * (k / 2), col + lane / 4 + 8 * (k % 2)};
      *dst.idx(dst.data, at) = packed.x;
      *dst.idx(dst.data, {at.x + 1, at.y}) = packed.y;
    }
  }
}

template <class RT, class ST> DEVICE void to_shared(ST &dst, const RT &src, int first) {
  const int lane = threadIdx.x % 32;
  const u32 start = ww::ptx::shared_address(&dst.data[0]);
  EACH(i, RT::height) EACH(j, RT::width) {
    const int row = first + 16 * i, col = RT::tile_size_col * j;
    if constexpr (sizeof(typename RT::T) < 4 && has_stmatrix) {
      u32 x[4];
      EACH(k, 4) x[k] = ww::bits<u32>(src.tiles[i][j].data[k]);
      ww::ptx::stmatrix<!RT::is_row>(matrix_address<RT>(dst, start, row, col, lane), x);
    } else {
      by_elements(dst, src.tiles[i][j], row, col, lane);
    }
  }
}

template <class GL> DEVICE bool holds(const GL &g, const coord<> &at) {
  return at.b >= 0 && at.b < g.batch() && at.d >= 0 && at.d < g.depth() && at.r >= 0 && at.r < g.rows() &&
         at.c >= 0 && at.c < g.cols();
}
template <int Axis> DEVICE coord<> moved(coord<> at, int rows, int cols) {
  (Axis == 0 ? at.b : Axis == 1 ? at.d : Axis == 2 ? at.r : at.c) += rows;
  at.c += cols;
  return at;
}

// Whether 16 bytes from this element on lie in one row of the tensor and on a 16-byte boundary.
template <class GL> DEVICE bool is_whole(const GL &g, const coord<> &at, int count) {
  return holds(g, at) && at.c + count <= g.cols() && (u64)&g[at] % 16 == 0;
}

}  // namespace detail

template <int N> struct group_memory {
  static constexpr int threads = N * WARP_THREADS;

  // -- registers and shared memory -----------------------------------------------------------------------
  template <ducks::rt::all RT, ducks::st::all ST> DEVICE static void load(RT &dst, const ST &src) {
    static_assert(ST::rows == N * RT::rows && ST::cols == RT::cols, "the shared tile is the group's tile");
    const int first = detail::group_chunk<N>() * RT::rows;
    if constexpr (base_types::same<typename RT::T, typename ST::T>) detail::from_shared(dst, src, first);
    else {
      rt<typename ST::T, RT::rows, RT::cols, typename RT::layout> same;
      detail::from_shared(same, src, first);
      register_conversions<N>::copy(dst, same);
    }
  }
  template <ducks::rt::all RT, ducks::st::all ST> DEVICE static void store(ST &dst, const RT &src) {
    static_assert(ST::rows == N * RT::rows && ST::cols == RT::cols, "the shared tile is the group's tile");
    const int first = detail::group_chunk<N>() * RT::rows;
    if constexpr (base_types::same<typename RT::T, typename ST::T>) detail::to_shared(dst, src, first);
    else {
      rt<typename ST::T, RT::rows, RT::cols, typename RT::layout> same;
      register_conversions<N>::copy(same, src);
      detail::to_shared(dst, same, first);
    }
  }
  template <ducks::rv::all RV, ducks::sv::all SV> DEVICE static void load(RV &dst, const SV &src) {
    static_assert(SV::length == N * RV::length, "the shared vector is the group's vector");
    const int lane = threadIdx.x % 32, first = detail::group_chunk<N>() * RV::length;
    EACH(i, ww::items<RV>()) {
      const int e = detail::vector_element<RV>(lane, i);
      if (!RV::is_naive || e < RV::length) ww::set(dst, i, base_types::convert_to<typename RV::T>(src[first + e]));
    }
  }
  template <ducks::rv::all RV, ducks::sv::all SV> DEVICE static void store(SV &dst, const RV &src) {
    static_assert(SV::length == N * RV::length, "the shared vector is the group's vector");
    const int lane = threadIdx.x % 32, first = detail::group_chunk<N>() * RV::length;
    // Lanes that share an element write the same value.
    EACH(i, ww::items<RV>()) {
      const int e = detail::vector_element<RV>(lane, i);
      if (!RV::is_naive || e < RV::length) dst[first + e] = base_types::convert_to<typename SV::T>(ww::get(src, i));
    }
  }

  // -- registers and global memory ---------------------------------------------------------------------
  // A coordinate in tiles counts the group's tiles; one in elements stays.
  template <class Tile> struct group_tile { static constexpr int rows = N * Tile::rows, cols = Tile::cols; };
  template <int Axis, class RT> DEVICE static coord<> origin_of(const coord<RT> &at) {
    return coord<group_tile<RT>>(at).template unit_coord<Axis, 3>();
  }
  template <int Axis, class> DEVICE static coord<> origin_of(const coord<> &at) { return at; }

  template <int Axis = 2, ducks::rt::all RT, class GL, class Coord = coord<RT>>
  DEVICE static void load(RT &dst, const GL &src, const Coord &at) {
    const coord<> origin = origin_of<Axis, RT>(at);
    const int lane = threadIdx.x % 32, first = detail::group_chunk<N>() * RT::rows;
    EACH(i, RT::elements_per_thread) {
      const coord<> e =
          detail::moved<Axis>(origin, first + detail::item_row<RT>(lane, i), detail::item_col<RT>(lane, i));
      typename RT::T x = base_types::constants<typename RT::T>::zero();
      if (detail::holds(src, e)) x = base_types::convert_to<typename RT::T>(src[e]);
      ww::set(dst, i, x);
    }
  }
  template <int Axis = 2, ducks::rt::all RT, class GL, class Coord = coord<RT>>
  DEVICE static void store(const GL &dst, const RT &src, const Coord &at) {
    const coord<> origin = origin_of<Axis, RT>(at);
    const int lane = threadIdx.x % 32, first = detail::group_chunk<N>() * RT::rows;
    EACH(i, RT::elements_per_thread) {
      const coord<> e =
          detail::moved<Axis>(origin, first + detail::item_row<RT>(lane, i), detail::item_col<RT>(lane, i));
      if (detail::holds(dst, e)) dst[e] = base_types::convert_to<typename GL::dtype>(ww::get(src, i));
    }
  }

  // -- shared and global memory ------------------------------------------------------------------------
  // 16 bytes a thread where a row allows it, else one element.
  template <int Axis = 2, bool AssumeAligned = false, ducks::st::all ST, class GL, class Coord = coord<ST>>
  DEVICE static void load(ST &dst, const GL &src, const Coord &at) {
    each_chunk<Axis, ST>(src, at, [&](int r, int c, const coord<> &e, bool whole, int count) {
      if (whole) *(uint4 *)dst.idx(dst.data, {r, c}) = *(const uint4 *)&src[e];
      else
        for (int k = 0; k < count; ++k)
          *dst.idx(dst.data, {r, c + k}) = element_or_zero(src, detail::moved<3>(e, k, 0));
    });
  }
  template <int Axis = 2, bool AssumeAligned = false, ducks::st::all ST, class GL, class Coord = coord<ST>>
  DEVICE static void store(const GL &dst, const ST &src, const Coord &at) {
    each_chunk<Axis, ST>(dst, at, [&](int r, int c, const coord<> &e, bool whole, int count) {
      if (whole) *(uint4 *)&dst[e] = *(const uint4 *)src.idx((typename ST::T *)src.data, {r, c});
      else
        for (int k = 0; k < count; ++k) {
          const coord<> there = detail::moved<3>(e, k, 0);
          if (detail::holds(dst, there)) dst[there] = *src.idx((typename ST::T *)src.data, {r, c + k});
        }
    });
  }
  // By cp.async, committed as one group; wait with load_async_wait.
  template <int Axis = 2, bool AssumeAligned = false, ducks::st::all ST, class GL, class Coord = coord<ST>>
  DEVICE static void load_async(ST &dst, const GL &src, const Coord &at) {
    const u32 start = ww::ptx::shared_address(&dst.data[0]);
    each_chunk<Axis, ST>(src, at, [&](int r, int c, const coord<> &e, bool whole, int count) {
      if (whole) ww::ptx::cp_async<16>(dst.idx(start, {r, c}), &src[e]);
      else
        for (int k = 0; k < count; ++k)
          *dst.idx(dst.data, {r, c + k}) = element_or_zero(src, detail::moved<3>(e, k, 0));
    });
    ww::ptx::cp_async_commit();
  }
  template <int Left = 0> DEVICE static void load_async_wait(int barrier) {
    ww::ptx::cp_async_wait<Left>();
    ww::ptx::named_barrier_sync(barrier, threads);
  }
  template <int Left = 0> DEVICE static void load_async_wait() {
    static_assert(N == 1, "groups of several warps need a barrier to wait at");
    kittens::load_async_wait<Left>();
  }

 private:
  template <class GL> DEVICE static typename GL::dtype element_or_zero(const GL &g, const coord<> &at) {
    return detail::holds(g, at) ? g[at] : base_types::constants<typename GL::dtype>::zero();
  }
  // The tile in chunks of 16 bytes, dealt out to the threads; none goes past the tile.
  template <int Axis, class ST, class GL, class Coord, class F>
  DEVICE static void each_chunk(const GL &g, const Coord &at, F &&f) {
    static_assert(base_types::same<typename ST::T, typename GL::dtype>, "shared tile and tensor have one element type");
    constexpr int count = 16 / sizeof(typename ST::T), per_row = ST::cols / count, chunks = ST::rows * per_row;
    const coord<> origin = at.template unit_coord<Axis, 3>();
    _Pragma("unroll 4") for (int i = threadIdx.x % threads; i < chunks; i += threads) {
      const int r = i / per_row, c = i % per_row * count;
      const coord<> e = detail::moved<Axis>(origin, r, c);
      f(r, c, e, detail::is_whole(g, e, count), count);
    }
  }
};

}  // namespace kittens
