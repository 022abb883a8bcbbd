// What the device tests share. Each case fills one plane of `out`; cases are numbered in the order of the text.
#pragma once
#include "warpwave.cuh"

using namespace kittens;
using namespace ww;

extern __shared__ int memory[];

#define TEST(name, threads) extern "C" __global__ __launch_bounds__(threads, 1) void name
#define CASES int plane = -1;
#define CASE(name) ++plane;

// Dense planes of R by C floats.
template <int R, int C> using plane_of = gl<float, 1, -1, R, C>;
template <int R, int C> DEVICE plane_of<R, C> planes(const float *p) {
  return {(float *)p, {1, 1 << 20, R, C}, {}};
}

// A register tile from and to a plane with rows of `pitch` floats, from row `first` on. Plain code, independent of the
// loads and stores under test.
template <class RT> DEVICE void fill_tile(RT &t, const float *plane, int pitch, int first) {
  EACH(i, RT::elements_per_thread)
    ww::set(t, i, base_types::convert_to<typename RT::T>(
                      plane[pitch * (first + detail::item_row<RT>(laneid(), i)) + detail::item_col<RT>(laneid(), i)]));
}
template <class RT> DEVICE void keep_tile(float *plane, const RT &t, int pitch, int first) {
  EACH(i, RT::elements_per_thread)
  plane[pitch * (first + detail::item_row<RT>(laneid(), i)) + detail::item_col<RT>(laneid(), i)] = (float)ww::get(t, i);
}
