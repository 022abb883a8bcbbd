// The values of a lane by number: register tiles row-major over base tiles [height][width], then data[k], then the
// parts of data[k]; register vectors in storage order. Works on ours and on the upstream types.
#pragma once
#include "ptx/base.cuh"

namespace ww {

template <class T, class P> DEVICE T packed_get(const P &p, int e) {
  if constexpr (sizeof(P) == sizeof(T)) return p;
  else if constexpr (sizeof(P) == 2 * sizeof(T)) return e ? p.y : p.x;
  else return bits<T>((u8)(bits<u32>(p) >> 8 * e));
}
template <class T, class P> DEVICE void packed_set(P &p, int e, T x) {
  if constexpr (sizeof(P) == sizeof(T)) p = x;
  else if constexpr (sizeof(P) == 2 * sizeof(T)) (e ? p.y : p.x) = x;
  else p = bits<P>((bits<u32>(p) & ~(0xffu << 8 * e)) | (u32)bits<u8>(x) << 8 * e);
}

template <class R> concept is_register_tile = requires(R r) {
  r.tiles[0][0].data[0];
  R::height;
};
template <class R> concept is_register_vector = requires(R r) {
  r.data[0][0];
  R::inner_dim;
};

template <class R> DEVICE constexpr int parts() { return sizeof(typename R::dtype) / sizeof(typename R::T); }
template <class R> DEVICE constexpr int items() {
  if constexpr (is_register_tile<R>) return R::elements_per_thread;
  else return R::outer_dim * R::inner_dim * parts<R>();
}

template <class R> DEVICE typename R::T get(const R &t, int i) {
  constexpr int n = parts<R>();
  if constexpr (is_register_tile<R>) {
    constexpr int per = R::packed_per_tile;
    const int base = i / (n * per);
    return packed_get<typename R::T>(t.tiles[base / R::width][base % R::width].data[i / n % per], i % n);
  } else {
    return packed_get<typename R::T>(t.data[i / n / R::inner_dim][i / n % R::inner_dim], i % n);
  }
}
template <class R> DEVICE void set(R &t, int i, typename R::T x) {
  constexpr int n = parts<R>();
  if constexpr (is_register_tile<R>) {
    constexpr int per = R::packed_per_tile;
    const int base = i / (n * per);
    packed_set(t.tiles[base / R::width][base % R::width].data[i / n % per], i % n, x);
  } else {
    packed_set(t.data[i / n / R::inner_dim][i / n % R::inner_dim], i % n, x);
  }
}

template <class T> constexpr bool is_f32 = false;
template <> constexpr bool is_f32<float> = true;

// The registers keep their values and their place in the program: after a wait for wgmma, before what reads them.
template <is_register_tile R> DEVICE void pin(R &t) {
  using T = typename R::T;
  EACH(i, R::height) EACH(j, R::width) EACH(k, R::packed_per_tile) {
    auto &p = t.tiles[i][j].data[k];
    // f32 as "f": a change of the register's type would be a move, for which the assembler waits.
    if constexpr (sizeof(p) == 4) asm volatile("" : "+r"(reinterpret_cast<u32 &>(p))::"memory");
    else if constexpr (is_f32<T>) asm volatile("" : "+f"(p.x), "+f"(p.y)::"memory");
    else asm volatile("" : "+r"(p.x), "+r"(p.y)::"memory");
  }
}

}  // namespace ww
