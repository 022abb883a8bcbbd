// Reductions of register tiles to vectors and of vectors to a value. Sums and products of bf16 and half run in f32
// and are rounded once at the end.
#pragma once
#include "maps.cuh"

namespace kittens {

enum class axis { ROW = 0, COL = 1 };

namespace detail {

template <class T> using working = base_types::either<base_types::same<T, int>, int, float>;

// Combine over lanes that differ in the bits of Mask; all of them get the result.
template <class Op, int Mask, class W> DEVICE W across_lanes(W x) {
  EACH(b, 5) if (Mask >> b & 1) x = Op::op(x, ww::bits<W>(__shfl_xor_sync(0xffffffffu, ww::bits<u32>(x), 1 << b)));
  return x;
}

// Reduce a tile to a vector; Item gives the vector's item for an item of the tile. Lanes that differ in Mask hold
// parts of the same elements.
template <class Op, int Mask, class V, class R, class Item> DEVICE void reduce(V &dst, const R &src, Item item) {
  using W = working<typename R::T>;
  W total[ww::items<V>()];
  bool started[ww::items<V>()] = {};
  EACH(i, R::elements_per_thread) {
    const int k = item(i);
    const W x = base_types::convert_to<W>(ww::get(src, i));
    total[k] = started[k] ? Op::op(total[k], x) : x;
    started[k] = true;
  }
  EACH(k, ww::items<V>())
    ww::set(dst, k, base_types::convert_to<typename V::T>(across_lanes<Op, Mask>(total[k])));
}

template <class Op, class V> DEVICE void accumulate(V &dst, const V &part, const V &acc) {
  EACH(k, ww::items<V>()) ww::set(dst, k, Op::op(ww::get(acc, k), ww::get(part, k)));
}

}  // namespace detail

template <int N> struct register_reductions {
  // One value a row (a col_vec): across the quad of a row layout, across the 8 lanes of a column in column layout.
  template <class Op, ducks::rt::all R> DEVICE static void row_reduce(typename R::col_vec &dst, const R &src) {
    detail::reduce<Op, R::is_row ? 3 : 28>(dst, src, [](int i) { return detail::col_vec_item<R>(i); });
  }
  // One value a column (a row_vec), of this warp's rows alone.
  template <class Op, ducks::rt::all R> DEVICE static void col_reduce(typename R::row_vec &dst, const R &src) {
    static_assert(N == 1, "reductions over rows are of one warp's tile");
    detail::reduce<Op, R::is_row ? 28 : 3>(dst, src, [](int i) { return detail::row_vec_item<R>(i); });
  }
  // All elements; elements that several lanes hold count once.
  template <class Op, ducks::rv::all V> DEVICE static typename V::T total(const V &v) {
    using W = detail::working<typename V::T>;
    W t = base_types::convert_to<W>(ww::get(v, 0));
    EACH(i, ww::items<V>() - 1) {
      const bool real = !V::is_naive || 32 * (i + 1) + (int)(threadIdx.x % 32) < V::length;
      if (real) t = Op::op(t, base_types::convert_to<W>(ww::get(v, i + 1)));
    }
    if constexpr (!V::is_naive) return base_types::convert_to<typename V::T>(
        detail::across_lanes<Op, V::is_ortho ? 28 : 3>(t));
    else if constexpr (V::length >= 32) return base_types::convert_to<typename V::T>(detail::across_lanes<Op, 31>(t));
    else return base_types::convert_to<typename V::T>(  // 16 elements: the upper lanes hold none
        ww::bits<W>(__shfl_sync(0xffffffffu, ww::bits<u32>(detail::across_lanes<Op, 15>(t)), 0)));
  }

#define KITTENS_REDUCTION(name, op) \
  template <ducks::rt::all R> DEVICE static void row_##name(typename R::col_vec &dst, const R &src) { \
    row_reduce<base_ops::op>(dst, src); \
  } \
  template <ducks::rt::all R> \
  DEVICE static void row_##name(typename R::col_vec &dst, const R &src, const typename R::col_vec &acc) { \
    typename R::col_vec part; \
    row_reduce<base_ops::op>(part, src); \
    detail::accumulate<base_ops::op>(dst, part, acc); \
  } \
  template <ducks::rt::all R> DEVICE static void col_##name(typename R::row_vec &dst, const R &src) { \
    col_reduce<base_ops::op>(dst, src); \
  } \
  template <ducks::rt::all R> \
  DEVICE static void col_##name(typename R::row_vec &dst, const R &src, const typename R::row_vec &acc) { \
    typename R::row_vec part; \
    col_reduce<base_ops::op>(part, src); \
    detail::accumulate<base_ops::op>(dst, part, acc); \
  } \
  template <axis A, ducks::rt::all R> DEVICE static auto name(const R &src) { \
    base_types::either<A == axis::COL, typename R::col_vec, typename R::row_vec> dst; \
    if constexpr (A == axis::COL) row_reduce<base_ops::op>(dst, src); \
    else col_reduce<base_ops::op>(dst, src); \
    return dst; \
  } \
  template <axis A, ducks::rt::all R, ducks::rv::all V> DEVICE static V name(const R &src, const V &acc) { \
    V dst = name<A>(src); \
    detail::accumulate<base_ops::op>(dst, dst, acc); \
    return dst; \
  } \
  template <ducks::rv::all V> DEVICE static void name(typename V::T &dst, const V &src) { \
    dst = total<base_ops::op>(src); \
  } \
  template <ducks::rv::all V> DEVICE static void name(typename V::T &dst, const V &src, const typename V::T &acc) { \
    dst = base_ops::op::op(acc, total<base_ops::op>(src)); \
  } \
  template <ducks::rv::all V> DEVICE static typename V::T name(const V &src) { return total<base_ops::op>(src); }
  KITTENS_REDUCTION(max, max)
  KITTENS_REDUCTION(min, min)
  KITTENS_REDUCTION(sum, sum)
  KITTENS_REDUCTION(prod, mul)
#undef KITTENS_REDUCTION
};

}  // namespace kittens
