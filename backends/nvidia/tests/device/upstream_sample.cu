// One block of attention and some of the extension's functions, written as a ThunderKittens kernel: it compiles
// unchanged with the upstream kittens.cuh in place of ours.
#include "warpwave.cuh"

using namespace kittens;
using namespace ww;

KERNEL(128, 1) void sample(float *p, tensor<kittens::bf16, 2> q, const __grid_constant__ tensor_map by_tiles,
                           const __grid_constant__ tensor_map by_panels) {
  extern __shared__ int memory[];
  shared_allocator<> al(memory);
  st_bf<64, 64> &a = al.allocate<st_bf<64, 64>>();
  st_bf<128, 64> &b = al.allocate<st_bf<128, 64>>();
  st_bf<128, 128> &v = al.allocate<st_bf<128, 128>>();
  st_bf<64, 128> &out = al.allocate<st_bf<64, 128>>();
  __shared__ semaphore full;
  if (threadIdx.x == 0) {
    init_semaphore(full, 0, 1);
    tma::expect(full, a, b, v);
    tma::load_async(a, mapped(by_tiles), coord<st_bf<64, 64>>{0, 0, 1, 2}, full);
    load_panels(b, by_panels, {64, 128}, full);
    load_panels(v, by_panels, {0, 128}, full);
  }
  __syncthreads();
  wait(full, 0);

  rt_fl<16, 128> s, o;
  rt_fl<16, 128>::col_vec largest, total;
  warpgroup::mm_ABt(s, a, b);
  warpgroup::mma_async_wait();
  pin(s);
  warp::row_max(largest, s);
  warp::sub_row(s, s, largest);
  warp::exp2(s, s);
  warp::row_sum(total, s);
  rt_bf<16, 128> weights;
  warp::copy(weights, s);
  warpgroup::mm_AB(o, weights, v);
  warpgroup::mma_async_wait();
  pin(o);
  warp::div_row(o, o, total);
  warpgroup::store(out, o);
  warpgroup::sync(1);

  rt_fl<16, 128> z;
  warpgroup::load(z, out);
  EACH(i, items<decltype(z)>()) p[threadIdx.x * items<decltype(z)>() + i] = silu_(ww::get(z, i));
  tile<f16, 8, 8> t;
  EACH(i, 8) t.set(i, to<f16>(p[i]) + (f16)(1.0f));
  vec<f16, 8> x;
  EACH(i, 8) x[i] = t.get(i);
  store_vector((f16 *)p, x);
  *q.at(3) = bf16_from<rtp, true>(p[3]);
  p[1] = f32_from_fp8e4m3(fp8e4m3_from<rne, true>(p[2]));
}
