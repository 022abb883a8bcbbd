// TMA, semaphores, clusters.
#include "common.cuh"

using tile_bf = st_bf<64, 128>;

template <class ST> DEVICE void show(float *plane, ST &s) {
  for (int i = threadIdx.x; i < ST::rows * ST::cols; i += blockDim.x)
    plane[i] = (float)*s.idx(s.data, {i / ST::cols, i % ST::cols});
}
DEVICE semaphore &prepared(semaphore *s, int threads, int transactions) {
  if (threadIdx.x == 0) {
    init_semaphore(*s, threads, transactions);
    ptx::fence_barrier_init();
    ptx::fence_async_shared();
  }
  __syncthreads();
  return *s;
}

// A tile at column 160, row 70 of a 100 by 200 tensor: what lies beyond is zero. Back into another tensor.
TEST(panels, 128)(float *out, const __grid_constant__ tensor_map from, const __grid_constant__ tensor_map to) {
  shared_allocator<> al(memory);
  auto &tile = al.allocate<tile_bf>();
  __shared__ semaphore arrived;
  prepared(&arrived, 0, 1);
  if (threadIdx.x == 0) {
    ptx::prefetch_map(&from);
    tma::expect(arrived, tile);
    load_panels(tile, from, {160, 70}, arrived);
  }
  wait(arrived, 0);
  show(out, tile);
  __syncthreads();
  if (threadIdx.x == 0) {
    store_panels(to, tile, {160, 70});
    tma::store_commit_group();
    tma::store_async_wait();
  }
}

// The five-axis maps of ThunderKittens, coordinates in tiles: tile (1, 1) of depth 2, stored to depth 0.
TEST(five_axes, 128)(float *out, const __grid_constant__ tensor_map from, const __grid_constant__ tensor_map to) {
  shared_allocator<> al(memory);
  auto &tile = al.allocate<tile_bf>();
  __shared__ semaphore arrived;
  prepared(&arrived, 0, 1);
  if (threadIdx.x < 32) {
    warp::tma::expect_bytes(arrived, size_bytes<tile_bf>);
    warp::tma::load_async(tile, mapped(from), {0, 2, 1, 1}, arrived);
  }
  wait(arrived, 0);
  show(out, tile);
  __syncthreads();
  if (threadIdx.x == 0) {
    tma::store_async(mapped(to), tile, {0, 0, 1, 1});
    tma::store_async_wait();
  }
}

// Adds a tile of ones times (block + 1) onto an f32 tensor, from several blocks.
TEST(additions, 128)(float *out, const __grid_constant__ tensor_map to, const __grid_constant__ tensor_map) {
  shared_allocator<> al(memory);
  auto &tile = al.allocate<st_fl<64, 64>>();
  for (int i = threadIdx.x; i < 64 * 64; i += 128) tile.data[i] = blockIdx.x + 1.0f;
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::fence_async_shared();
    add_panels(to, tile, {16, 8});
    tma::store_commit_group();
    tma::store_async_wait();
  }
}

// A ring of three stages: one warp loads eight tiles, four warps add them up in registers.
TEST(ring, 160)(float *out, const __grid_constant__ tensor_map from, const __grid_constant__ tensor_map) {
  shared_allocator<> al(memory);
  auto &stages = al.allocate<st_bf<64, 64>, 3>();
  __shared__ semaphore full[3], empty[3];
  if (threadIdx.x == 0) {
    EACH(i, 3) init_semaphore(full[i], 0, 1), init_semaphore(empty[i], 4, 0);
    ptx::fence_barrier_init();
  }
  __syncthreads();
  u32 phases = 0xffff0000;
  if (warpid() == 4) {
    for (int i = 0, stage = 0; i < 8; ++i, stage = ring_advance<3>(stage)) {
      wait(empty[stage], get_phasebit<1>(phases, stage));
      update_phasebit<1>(phases, stage);
      warp::tma::expect(full[stage], stages[stage]);
      if (laneid() == 0) load_panels(stages[stage], from, {0, 64 * i}, full[stage]);
    }
    return;
  }
  rt_fl<16, 64> sum, x;
  warp::zero(sum);
  for (int i = 0, stage = 0; i < 8; ++i, stage = ring_advance<3>(stage)) {
    wait(full[stage], get_phasebit<0>(phases, stage));
    update_phasebit<0>(phases, stage);
    warpgroup::load(x, stages[stage]);
    warp::add(sum, sum, x);
    __syncwarp();
    warp::arrive(empty[stage]);
  }
  keep_tile(out, sum, 64, 16 * warpid());
}

// Two blocks of a cluster: each loads half of the tile's panels into both; then block 1 arrives at block 0's semaphore.
extern "C" __global__ __cluster_dims__(2) __launch_bounds__(128)
void multicast(float *out, const __grid_constant__ tensor_map from, const __grid_constant__ tensor_map) {
  shared_allocator<> al(memory);
  auto &halves = al.allocate<st_bf<64, 64>, 2>();
  __shared__ semaphore arrived, met;
  if (threadIdx.x == 0) {
    init_semaphore(arrived, 0, 1), init_semaphore(met, 2, 0);
    ptx::fence_barrier_init();
  }
  everyone::tma::cluster::sync();
  const int rank = cluster_ctarank();
  if (threadIdx.x == 0) {
    tma::expect_bytes(arrived, 2 * size_bytes<st_bf<64, 64>>);
    load_panels(halves[rank], from, {64 * rank, 0}, arrived, (u16)3);
    tma::cluster::arrive(met, 0);
  }
  wait(arrived, 0);
  show(out + blockIdx.x * 2 * 64 * 64, halves[0]);
  show(out + (blockIdx.x * 2 + 1) * 64 * 64, halves[1]);
  if (rank == 0) tma::cluster::wait(met, 0);
  everyone::tma::cluster::sync();
}

// Plain bytes in and out, named barriers between two groups, register budgets of two warpgroups.
TEST(bytes, 256)(float *out, const float *in, int *) {
  __shared__ sv_fl<256> v;
  __shared__ semaphore arrived;
  prepared(&arrived, 0, 1);
  if (warpgroup::groupid() == 0) {
    warpgroup::decrease_registers<40>();
    if (threadIdx.x == 0) {
      tma::expect(arrived, v);
      tma::load_async(&v, (void *)in, 1024, arrived);
    }
    wait(arrived, 0);
    v[threadIdx.x] *= 2.0f;
    group<8>::arrive(3);
  } else {
    warpgroup::increase_registers<200>();
    group<8>::sync(3);
    v[threadIdx.x] = v[threadIdx.x - 128] + v[threadIdx.x];
    warpgroup::sync(4);
    if (warpgroup::laneid() == 0) {
      tma::store_async(out, &v, 1024);
      tma::store_async_wait();
    }
  }
}
