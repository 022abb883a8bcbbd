// Register tiles and vectors: maps, reductions, conversions, moves. Four warps hold a 64x32 tile, 16 rows each.
#include "common.cuh"

using tile_fl = rt_fl<16, 32>;

// Each warp has 16 rows of planes of 64 by 32.
#define FILL(t, from) fill_tile(t, from, 32, 16 * warpid())
#define KEEP(t) keep_tile(out + 2048 * plane, t, 32, 16 * warpid())
#define KEEP_ROWS(v) warp::broadcast_row(r, v), KEEP(r)
#define KEEP_COLS(v) warp::broadcast_col(r, v), KEEP(r)

TEST(maps, 128)(float *out, const float *a, const float *b) {
  tile_fl x, y, r;
  tile_fl::col_vec v;
  tile_fl::row_vec h;
  FILL(x, a);
  FILL(y, b);
  warp::row_max(v, y);
  EACH(i, items<tile_fl::row_vec>()) ww::set(h, i, 1.0f + detail::vector_element<tile_fl::row_vec>(laneid(), i));
  CASES
  CASE(add) warp::add(r, x, y); KEEP(r);
  CASE(sub) warp::sub(r, x, y); KEEP(r);
  CASE(mul) warp::mul(r, x, y); KEEP(r);
  CASE(div) warp::div(r, x, y); KEEP(r);
  CASE(max) warp::max(r, x, y); KEEP(r);
  CASE(min) warp::min(r, x, y); KEEP(r);
  CASE(add_scalar) warp::add(r, x, 2.5f); KEEP(r);
  CASE(abs) warp::abs(r, x); KEEP(r);
  CASE(relu) warp::relu(r, x); KEEP(r);
  CASE(exp) warp::exp(r, x); KEEP(r);
  CASE(exp2) warp::exp2(r, x); KEEP(r);
  CASE(log) r = warp::log(warp::abs(x)); KEEP(r);
  CASE(log2) r = warp::log2(warp::abs(x)); KEEP(r);
  CASE(zero) warp::zero(r); KEEP(r);
  CASE(one) warp::one(r); KEEP(r);
  CASE(neg_infty) warp::neg_infty(r); KEEP(r);
  CASE(pos_infty) warp::pos_infty(r); KEEP(r);
  CASE(row_max) KEEP_ROWS(v);
  CASE(add_row) warp::add_row(r, x, v); KEEP(r);
  CASE(sub_row) warp::sub_row(r, x, v); KEEP(r);
  CASE(mul_row) warp::mul_row(r, x, v); KEEP(r);
  CASE(div_row) warp::div_row(r, x, v); KEEP(r);
  CASE(broadcast_col) KEEP_COLS(h);
  CASE(add_col) warp::add_col(r, x, h); KEEP(r);
  CASE(sub_col) warp::sub_col(r, x, h); KEEP(r);
  CASE(mul_col) warp::mul_col(r, x, h); KEEP(r);
  CASE(div_col) warp::div_col(r, x, h); KEEP(r);
  CASE(fma_row) warp::row_map<base_ops::fma_AxCtB>(r, x, y, v); KEEP(r);
  CASE(row_min) warp::row_min(v, x); KEEP_ROWS(v);
  CASE(row_sum) warp::row_sum(v, x); KEEP_ROWS(v);
  CASE(row_sum_more) warp::row_sum(v, y, v); KEEP_ROWS(v);
  CASE(row_prod) warp::row_prod(v, x); KEEP_ROWS(v);
  CASE(axis_max) v = warp::max<axis::COL>(x); KEEP_ROWS(v);
  CASE(col_sum) warp::col_sum(h, x); KEEP_COLS(h);
  CASE(col_max) h = warp::max<axis::ROW>(x); KEEP_COLS(h);
  CASE(tril) warpgroup::tril(r, x, 3, -1.0f); KEEP(r);
  CASE(triu) warpgroup::triu(r, x, -5); KEEP(r);
  CASE(apply) warpgroup::apply(r, x, [](int row, int col, float value) { return value + 100 * row + col; }); KEEP(r);
  CASE(right_fill) warpgroup::right_fill(r, x, 21, 9.0f); KEEP(r);
  CASE(left_fill) warpgroup::left_fill(r, x, 9, 9.0f); KEEP(r);
  CASE(upper_fill) warpgroup::upper_fill(r, x, 19, 9.0f); KEEP(r);
  CASE(lower_fill) warpgroup::lower_fill(r, x, 50, 9.0f); KEEP(r);
  CASE(upper_right_fill) warpgroup::upper_right_fill(r, x, 30, 20, 9.0f); KEEP(r);
  CASE(make_causal) warpgroup::make_causal(r, x, -7.0f); KEEP(r);
  CASE(make_causal_t) warpgroup::make_causal_t(r, x, -7.0f); KEEP(r);
  CASE(total) r = warp::sum(warp::sum<axis::COL>(x)); KEEP(r);
  CASE(largest) r = warp::max(warp::max<axis::ROW>(x)); KEEP(r);
}

// bf16 and half tiles: each operation rounded once.
template <class T> DEVICE void small_maps(float *out, const float *a, const float *b, int first) {
  rt<T, 16, 32> x, y, r;
  FILL(x, a);
  FILL(y, b);
  int plane = first;
  const auto keep = [&] { KEEP(r), ++plane; };
  r = x, keep();
  warp::add(r, x, y), keep();
  warp::mul(r, x, y), keep();
  warp::div(r, x, y), keep();
  warp::max(r, x, y), keep();
  typename rt<T, 16, 32>::col_vec v;
  warp::row_sum(v, x), warp::broadcast_row(r, v), keep();
}
TEST(small, 128)(float *out, const float *a, const float *b) {
  CASES
  CASE(bf16_copy) CASE(bf16_add) CASE(bf16_mul) CASE(bf16_div) CASE(bf16_max) CASE(bf16_row_sum)
  small_maps<bf16>(out, a, b, 0);
  CASE(half_copy) CASE(half_add) CASE(half_mul) CASE(half_div) CASE(half_max) CASE(half_row_sum)
  small_maps<half>(out, a, b, plane - 5);
}

// Through shared memory in each element type, and back; and global memory as threads copy it.
template <class T, bool Swizzle> DEVICE void through(float *out, const float *a, st<T, 64, 32, Swizzle> &s, int plane) {
  tile_fl x, r;
  FILL(x, a);
  warpgroup::store(s, x);
  warpgroup::sync(1);
  warpgroup::load(r, s);
  KEEP(r);
  warpgroup::sync(1);
}
// By columns: each warp takes its 16 rows of the tile in column layout.
template <class T> DEVICE void through_columns(float *out, const float *a, st<T, 64, 32> &s, int plane) {
  rt<T, 16, 32> x;
  FILL(x, a);
  warpgroup::store(s, x);
  warpgroup::sync(1);
  rt<T, 16, 32, col_l> c;
  warpgroup::load(c, s);
  KEEP(c);
  warpgroup::sync(1);
  warp::add(c, c, c);
  warpgroup::store(s, c);
  warpgroup::sync(1);
  warpgroup::load(x, s);
  ++plane;
  KEEP(x);
  warpgroup::sync(1);
}
TEST(shared_tiles, 128)(float *out, const float *a) {
  shared_allocator<> al(memory);
  auto &fl = al.allocate<st_fl<64, 32>>();
  auto &plain = al.allocate<st<float, 64, 32, false>>();
  auto &bf = al.allocate<st_bf<64, 32>>();
  auto &narrow = al.allocate<st<bf16, 64, 32, true, 32>>();
  CASES
  CASE(st_fl) through(out, a, fl, plane);
  CASE(st_plain) through(out, a, plain, plane);
  CASE(st_bf) through(out, a, bf, plane);
  CASE(st_hf) through(out, a, *(st_hf<64, 32> *)&bf, plane);
  CASE(columns_bf) CASE(columns_bf_doubled) through_columns(out, a, bf, plane - 1);
  CASE(columns_fl) CASE(columns_fl_doubled) through_columns(out, a, fl, plane - 1);

  CASE(copied) {
    warpgroup::load(fl, planes<64, 32>(a), {0, 0, 0, 0});
    warpgroup::sync(1);
    warpgroup::store(planes<64, 32>(out), fl, {0, plane, 0, 0});
    warpgroup::sync(1);
  }
  CASE(copied_async) {
    // The tensor has 50 rows and 28 columns: the rest is zero.
    const gl<float, 1, 1, -1, 28> part = {(float *)a, {1, 1, 50, 28}, {}};
    warpgroup::load_async(fl, part, {0, 0, 0, 0});
    warpgroup::load_async_wait(1);
    warpgroup::store(planes<64, 32>(out), fl, {0, plane, 0, 0});
    warpgroup::sync(1);
  }
  CASE(explicit_swizzle) {
    tile_fl x;
    FILL(x, a);
    warpgroup::store(narrow, x);
    warpgroup::sync(1);
    // Four windows of 32 by 16, one a warp.
    rt_fl<32, 16> w;
    auto window = narrow.subtile<32, 16>({warpid() / 2, warpid() % 2});
    warp::load(w, window);
    warp::store(planes<64, 32>(out), w, coord<>{0, plane, 32 * (warpid() / 2), 16 * (warpid() % 2)});
  }
  CASE(registers_of_global) {
    tile_fl x;
    warpgroup::load(x, planes<64, 32>(a), {0, 0, 0, 0});
    warpgroup::store(planes<64, 32>(out), x, {0, plane, 0, 0});
  }
}

// Layouts of one warp's tile, 32 by 32, and conversions between them.
#undef KEEP
#define KEEP(t) keep_tile(out + 1024 * plane, t, 32, 0)
TEST(layouts, 32)(float *out, const float *a) {
  rt_fl<32, 32> x, r;
  rt_bf<32, 32> s, t;
  fill_tile(x, a, 32, 0);
  warp::copy(s, x);
  CASES
  rt_bf<32, 32, col_l> c;
  CASE(swap_layout) warp::swap_layout(c, s); KEEP(c);
  CASE(swap_back) warp::swap_layout(t, c); KEEP(t);
  CASE(transpose) warp::transpose_sep(t, s); KEEP(t);
  CASE(transpose_inplace) warp::transpose_inplace(t); KEEP(t);
  CASE(lower_half) KEEP((warp::subtile_inplace<16>(s, 1)));
  rt_fp8e4m3<32, 32> e4;
  rt_fp8e5m2<32, 32> e5;
  CASE(e4m3) warp::copy(e4, x); warp::copy(r, e4); KEEP(r);
  CASE(e5m2) warp::copy(e5, x); warp::copy(r, e5); KEEP(r);
  CASE(e4m3_direct) KEEP(e4);
  CASE(e4m3_of_bf16) warp::copy(e4, s); KEEP(e4);
  rt_fl<32, 32, col_l> y;
  fill_tile(y, a, 32, 0);
  rt_fl<32, 32, col_l>::col_vec v;
  rt_fl<32, 32, col_l>::row_vec h;
  CASE(col_layout_row_sum) warp::row_sum(v, y); warp::broadcast_row(y, v); KEEP(y);
  fill_tile(y, a, 32, 0);
  CASE(col_layout_col_max) warp::col_max(h, y); warp::broadcast_col(y, h); KEEP(y);
}

// Vectors of 48 elements in each layout: loaded, copied to another, stored.
template <class From, class To> DEVICE void vector_case(float *out, const sv_fl<48> &in, sv_fl<48> &back, int plane) {
  rv_fl<48, From> v;
  rv_fl<48, To> w;
  warp::load(v, in);
  warp::copy(w, v);
  warp::store(back, w);
  __syncwarp();
  for (int i = laneid(); i < 48; i += 32) out[64 * plane + i] = back[i];
  const float total = warp::sum(w), largest = warp::max(v);
  out[64 * plane + 48] = total, out[64 * plane + 49] = largest;
  rv_bf<48, To> rounded;
  warp::copy(rounded, v);
  out[64 * plane + 50] = (float)warp::min(rounded);
  __syncwarp();
}
TEST(vectors, 32)(float *out, const float *a) {
  __shared__ sv_fl<48> in, back;
  for (int i = laneid(); i < 48; i += 32) in[i] = a[i];
  __syncwarp();
  CASES
#define PAIR(from, to) CASE(from##_##to) vector_case<from##_l, to##_l>(out, in, back, plane);
  PAIR(align, align) PAIR(align, ortho) PAIR(align, naive)
  PAIR(ortho, align) PAIR(ortho, ortho) PAIR(ortho, naive)
  PAIR(naive, align) PAIR(naive, ortho) PAIR(naive, naive)
}

// mma.sync: D = op(A) op(B) + C with C the corner of B's plane; 32x16x32.
template <class T, class Acc, int Ta, int Tb>
DEVICE void product(float *out, const float *a, const float *b, int plane) {
  rt<T, 32, 32, base_types::either<Ta == 0, row_l, col_l>> left;
  rt<T, Tb ? 16 : 32, Tb ? 32 : 16, base_types::either<Tb == 1, row_l, col_l>> right;
  rt<Acc, 32, 16> d, c;
  fill_tile(left, a, 32, 0);
  fill_tile(right, b, 32, 0);
  fill_tile(c, b, 32, 0);
  warp::mma<Ta, Tb>(d, left, right, c);
  KEEP(d);
}
TEST(warp_products, 32)(float *out, const float *a, const float *b) {
  CASES
#define FORMS(name, T, Acc) \
  CASE(name##_AB) product<T, Acc, 0, 0>(out, a, b, plane); \
  CASE(name##_ABt) product<T, Acc, 0, 1>(out, a, b, plane); \
  CASE(name##_AtB) product<T, Acc, 1, 0>(out, a, b, plane); \
  CASE(name##_AtBt) product<T, Acc, 1, 1>(out, a, b, plane);
  FORMS(bf16, bf16, float)
  FORMS(f16, half, float)
  FORMS(half, half, half)
  FORMS(tf32, float, float)
#if __CUDA_ARCH__ >= 890
  CASE(e4m3_ABt) product<fp8e4m3, float, 0, 1>(out, a, b, plane);
  CASE(e5m2_ABt) product<fp8e5m2, float, 0, 1>(out, a, b, plane);
#endif
  CASE(s8_ABt) product<int8, int, 0, 1>(out, a, b, plane);
}
