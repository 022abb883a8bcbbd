// Elementwise operations, row and column broadcasts, masks: the destination first. On bf16 and half each operation
// is done in f32 and rounded once.
#pragma once
#include "../warpwave/approximate.cuh"
#include "shared.cuh"

namespace kittens {

namespace base_ops {
#define KITTENS_FILL(name) \
  struct name { \
    template <class T> DEVICE static T op(T) { return base_types::constants<T>::name(); } \
  };
KITTENS_FILL(zero)
KITTENS_FILL(one)
KITTENS_FILL(pos_infty)
KITTENS_FILL(neg_infty)
#undef KITTENS_FILL
#define KITTENS_UNARY(name, expression) \
  struct name { \
    DEVICE static float op(float x) { return expression; } \
    template <class T> DEVICE static T op(T x) { return base_types::convert_to<T>(op((float)x)); } \
  };
KITTENS_UNARY(exp, __expf(x))
KITTENS_UNARY(exp2, ww::ex2(x))
KITTENS_UNARY(log, __logf(x))
KITTENS_UNARY(log2, __log2f(x))
KITTENS_UNARY(abs, fabsf(x))
KITTENS_UNARY(relu, fmaxf(x, 0.0f))
#undef KITTENS_UNARY
struct copy {
  template <class T> DEVICE static T op(T x) { return x; }
};
struct copy2 {
  template <class T> DEVICE static T op(T, T y) { return y; }
};
#define KITTENS_BINARY(name, expression) \
  struct name { \
    DEVICE static float op(float a, float b) { return expression; } \
    DEVICE static int op(int a, int b) { return expression; } \
    template <class T> DEVICE static T op(T a, T b) { return base_types::convert_to<T>(op((float)a, (float)b)); } \
  };
KITTENS_BINARY(sum, a + b)
KITTENS_BINARY(sub, a - b)
KITTENS_BINARY(mul, a * b)
KITTENS_BINARY(div, a / b)
KITTENS_BINARY(max, ::max(a, b))
KITTENS_BINARY(min, ::min(a, b))
#undef KITTENS_BINARY
// A x B + C with a vector for B or C.
struct fma_AxBtC {
  DEVICE static float op(float a, float b, float c) { return __fmaf_rn(a, b, c); }
};
struct fma_AxCtB {
  DEVICE static float op(float a, float b, float c) { return __fmaf_rn(a, c, b); }
};
}  // namespace base_ops

namespace detail {

template <class R> concept registers = ducks::rt::all<R> || ducks::rv::all<R>;

// Item i of another operand: of a tile or vector of the same type, or a scalar.
template <class R, class U> DEVICE typename R::T operand(const U &u, int i) {
  if constexpr (base_types::same<R, U>) return ww::get(u, i);
  else return base_types::convert_to<typename R::T>(u);
}

}  // namespace detail

template <int N> struct register_maps {
  template <class Op, detail::registers R> DEVICE static void unary_map(R &dst, const R &src) {
    EACH(i, ww::items<R>()) ww::set(dst, i, Op::op(ww::get(src, i)));
  }
  template <class Op, detail::registers R, class U> DEVICE static void bin_map(R &dst, const R &a, const U &b) {
    EACH(i, ww::items<R>()) ww::set(dst, i, Op::op(ww::get(a, i), detail::operand<R>(b, i)));
  }

#define KITTENS_FILL(name) \
  template <detail::registers R> DEVICE static void name(R &dst) { unary_map<base_ops::name>(dst, dst); }
  KITTENS_FILL(one)
  KITTENS_FILL(pos_infty)
  KITTENS_FILL(neg_infty)
#undef KITTENS_FILL
  template <detail::registers R> DEVICE static void zero(R &dst) {
    EACH(i, ww::items<R>()) ww::set(dst, i, base_types::constants<typename R::T>::zero());
  }
#define KITTENS_UNARY(name) \
  template <detail::registers R> DEVICE static void name(R &dst, const R &src) { \
    unary_map<base_ops::name>(dst, src); \
  } \
  template <detail::registers R> DEVICE static R name(const R &src) { \
    R dst; \
    name(dst, src); \
    return dst; \
  }
  KITTENS_UNARY(exp)
  KITTENS_UNARY(exp2)
  KITTENS_UNARY(log)
  KITTENS_UNARY(log2)
  KITTENS_UNARY(abs)
  KITTENS_UNARY(relu)
#undef KITTENS_UNARY
#define KITTENS_BINARY(name, function) \
  template <detail::registers R, class U> DEVICE static void name(R &dst, const R &a, const U &b) { \
    bin_map<base_ops::function>(dst, a, b); \
  }
  KITTENS_BINARY(add, sum)
  KITTENS_BINARY(sub, sub)
  KITTENS_BINARY(mul, mul)
  KITTENS_BINARY(div, div)
  KITTENS_BINARY(max, max)
  KITTENS_BINARY(min, min)
#undef KITTENS_BINARY

  // Row r of the tile with element r of a column vector; column c with element c of a row vector.
  template <class Op, ducks::rt::all R> DEVICE static void row_map(R &dst, const R &src, const typename R::col_vec &v) {
    EACH(i, R::elements_per_thread)
      ww::set(dst, i, Op::op(ww::get(src, i), ww::get(v, detail::col_vec_item<R>(i))));
  }
  template <class Op, ducks::rt::all R>
  DEVICE static void row_map(R &dst, const R &a, const R &b, const typename R::col_vec &v) {
    EACH(i, R::elements_per_thread)
      ww::set(dst, i, Op::op(ww::get(a, i), ww::get(b, i), ww::get(v, detail::col_vec_item<R>(i))));
  }
  template <class Op, ducks::rt::all R> DEVICE static void col_map(R &dst, const R &src, const typename R::row_vec &v) {
    EACH(i, R::elements_per_thread)
      ww::set(dst, i, Op::op(ww::get(src, i), ww::get(v, detail::row_vec_item<R>(i))));
  }
  template <class Op, ducks::rt::all R>
  DEVICE static void col_map(R &dst, const R &a, const R &b, const typename R::row_vec &v) {
    EACH(i, R::elements_per_thread)
      ww::set(dst, i, Op::op(ww::get(a, i), ww::get(b, i), ww::get(v, detail::row_vec_item<R>(i))));
  }
#define KITTENS_BROADCAST(name, op) \
  template <ducks::rt::all R> DEVICE static void name##_row(R &dst, const R &src, const typename R::col_vec &v) { \
    row_map<base_ops::op>(dst, src, v); \
  } \
  template <ducks::rt::all R> DEVICE static void name##_col(R &dst, const R &src, const typename R::row_vec &v) { \
    col_map<base_ops::op>(dst, src, v); \
  }
  KITTENS_BROADCAST(add, sum)
  KITTENS_BROADCAST(sub, sub)
  KITTENS_BROADCAST(mul, mul)
  KITTENS_BROADCAST(div, div)
#undef KITTENS_BROADCAST
  template <ducks::rt::all R> DEVICE static void broadcast_row(R &dst, const typename R::col_vec &v) {
    EACH(i, R::elements_per_thread) ww::set(dst, i, ww::get(v, detail::col_vec_item<R>(i)));
  }
  template <ducks::rt::all R> DEVICE static void broadcast_col(R &dst, const typename R::row_vec &v) {
    EACH(i, R::elements_per_thread) ww::set(dst, i, ww::get(v, detail::row_vec_item<R>(i)));
  }

  // value = f(row, column, value), with the row in the tile of the whole group.
  template <ducks::rt::all R, class F> DEVICE static void apply(R &dst, const R &src, F &&f) {
    const int lane = threadIdx.x % 32, first = detail::group_chunk<N>() * R::rows;
    EACH(i, R::elements_per_thread)
      ww::set(dst, i, f(first + detail::item_row<R>(lane, i), detail::item_col<R>(lane, i), ww::get(src, i)));
  }
  template <ducks::rv::all R, class F> DEVICE static void apply(R &dst, const R &src, F &&f) {
    const int lane = threadIdx.x % 32, first = detail::group_chunk<N>() * R::length;
    EACH(i, ww::items<R>()) ww::set(dst, i, f(first + detail::vector_element<R>(lane, i), ww::get(src, i)));
  }
  template <detail::registers R, class F> DEVICE static R apply(const R &src, F &&f) {
    R dst;
    apply(dst, src, f);
    return dst;
  }

// Keep where the condition holds on row r and column c, else the value.
#define KITTENS_KEEP(condition) \
  apply(dst, src, [&](int r, int c, typename R::T x) { return (condition) ? x : val; })
#define KITTENS_VALUE const typename R::T &val = base_types::constants<typename R::T>::zero()
  template <ducks::rt::all R> DEVICE static void tril(R &dst, const R &src, int diagonal = 0, KITTENS_VALUE) {
    KITTENS_KEEP(c <= r + diagonal);
  }
  template <ducks::rt::all R> DEVICE static void triu(R &dst, const R &src, int diagonal = 0, KITTENS_VALUE) {
    KITTENS_KEEP(c >= r + diagonal);
  }
  template <ducks::rt::all R> DEVICE static void make_causal(R &dst, const R &src, KITTENS_VALUE) {
    KITTENS_KEEP(c <= r);
  }
  template <ducks::rt::all R> DEVICE static void make_causal_t(R &dst, const R &src, KITTENS_VALUE) {
    KITTENS_KEEP(c >= r);
  }
  template <ducks::rt::all R> DEVICE static void right_fill(R &dst, const R &src, int from, KITTENS_VALUE) {
    KITTENS_KEEP(c < from);
  }
  template <ducks::rt::all R> DEVICE static void left_fill(R &dst, const R &src, int to, KITTENS_VALUE) {
    KITTENS_KEEP(c >= to);
  }
  template <ducks::rt::all R> DEVICE static void upper_fill(R &dst, const R &src, int to, KITTENS_VALUE) {
    KITTENS_KEEP(r >= to);
  }
  template <ducks::rt::all R> DEVICE static void lower_fill(R &dst, const R &src, int from, KITTENS_VALUE) {
    KITTENS_KEEP(r < from);
  }
  template <ducks::rt::all R>
  DEVICE static void upper_right_fill(R &dst, const R &src, int row, int col, KITTENS_VALUE) {
    KITTENS_KEEP(r >= row || c < col);
  }
#undef KITTENS_KEEP
#undef KITTENS_VALUE
};

}  // namespace kittens
