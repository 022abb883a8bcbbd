// wgmma in every format and operand order, through shared tiles of every swizzle. D = 2 op(A) op(B), from mm_ then
// mma_. Kernels are named by format, form, N, K; `r_` has A in registers.
#include "common.cuh"

template <class ST> DEVICE void fill_shared(ST &s, const float *plane) {
  for (int i = threadIdx.x; i < ST::rows * ST::cols; i += 128)
    *s.idx(s.data, {i / ST::cols, i % ST::cols}) = base_types::convert_to<typename ST::T>(plane[i]);
}

template <int Ta, int Tb, bool First, class D, class A, class B> DEVICE void multiply(D &d, const A &a, const B &b) {
  if constexpr (First) warpgroup::mm<Ta, Tb>(d, a, b);
  else warpgroup::mma<Ta, Tb>(d, a, b);
}

template <class TA, class TB, class Acc, int Ta, int Tb, int N, int K, bool Registers>
DEVICE void product(float *out, const float *a, const float *b) {
  shared_allocator<> al(memory);
  auto &left = al.allocate<st<TA, Ta ? K : 64, Ta ? 64 : K>>();
  auto &right = al.allocate<st<TB, Tb ? N : K, Tb ? K : N>>();
  fill_shared(left, a);
  fill_shared(right, b);
  __syncthreads();
  rt<Acc, 16, N> d;
  if constexpr (Registers) {
    rt<TA, 16, K> r;
    warpgroup::load(r, left);
    multiply<Ta, Tb, true>(d, r, right);
    multiply<Ta, Tb, false>(d, r, right);
  } else {
    multiply<Ta, Tb, true>(d, left, right);
    multiply<Ta, Tb, false>(d, left, right);
  }
  warpgroup::mma_async_wait();
  pin(d);
  keep_tile(out, d, N, 16 * warpid());
}

#define PRODUCT(kind, TA, TB, Acc, form, ta, tb, N, K, registers) \
  TEST(kind##_##form##_##N##_##K, 128)(float *out, const float *a, const float *b) { \
    product<TA, TB, Acc, ta, tb, N, K, registers>(out, a, b); \
  }
#define ALL_FORMS(kind, T, N, K) \
  PRODUCT(kind, T, T, float, AB, 0, 0, N, K, false) \
  PRODUCT(kind, T, T, float, ABt, 0, 1, N, K, false) \
  PRODUCT(kind, T, T, float, AtB, 1, 0, N, K, false) \
  PRODUCT(kind, T, T, float, AtBt, 1, 1, N, K, false)
#define REGISTER_FORMS(kind, T, N, K) \
  PRODUCT(r_##kind, T, T, float, AB, 0, 0, N, K, true) \
  PRODUCT(r_##kind, T, T, float, ABt, 0, 1, N, K, true)
ALL_FORMS(bf16, bf16, 64, 64)
ALL_FORMS(bf16, bf16, 128, 128)
ALL_FORMS(bf16, bf16, 48, 96)
ALL_FORMS(bf16, bf16, 16, 16)
ALL_FORMS(f16, half, 96, 32)
REGISTER_FORMS(bf16, bf16, 256, 64)
REGISTER_FORMS(f16, half, 32, 32)
PRODUCT(bf16, bf16, bf16, float, ABt, 0, 1, 256, 64, false)
PRODUCT(tf32, float, float, float, ABt, 0, 1, 64, 32, false)
PRODUCT(tf32, float, float, float, ABt, 0, 1, 32, 16, false)
PRODUCT(s8, int8, int8, int, ABt, 0, 1, 64, 64, false)
PRODUCT(r_s8, int8, int8, int, ABt, 0, 1, 128, 128, true)
PRODUCT(e4m3_e4m3, fp8e4m3, fp8e4m3, float, ABt, 0, 1, 256, 128, false)
PRODUCT(e4m3_e5m2, fp8e4m3, fp8e5m2, float, ABt, 0, 1, 64, 64, false)
PRODUCT(e5m2_e4m3, fp8e5m2, fp8e4m3, float, ABt, 0, 1, 64, 32, false)
PRODUCT(e5m2_e5m2, fp8e5m2, fp8e5m2, float, ABt, 0, 1, 192, 64, false)
PRODUCT(r_e4m3_e4m3, fp8e4m3, fp8e4m3, float, ABt, 0, 1, 64, 128, true)
PRODUCT(r_e5m2_e4m3, fp8e5m2, fp8e4m3, float, ABt, 0, 1, 64, 64, true)

// Windows of larger tiles: rows 64 on of A, columns 64 on of B.
TEST(windows_AB_64_64, 128)(float *out, const float *a, const float *b) {
  shared_allocator<> al(memory);
  auto &left = al.allocate<st_bf<192, 64>>();
  auto &right = al.allocate<st_bf<64, 128>>();
  auto window = left.subtile<64, 64>({1, 0});
  auto columns = right.subtile<64, 64>({0, 1});
  fill_shared(window, a);
  fill_shared(columns, b);
  __syncthreads();
  rt_fl<16, 64> d;
  warpgroup::mm_AB(d, window, columns);
  warpgroup::mma_AB(d, window, columns);
  warpgroup::mma_async_wait();
  pin(d);
  keep_tile(out, d, 64, 16 * warpid());
}

// The instruction for each N, A B^T with K = 64; one N a block; planes of 64 by 256 floats for N = 8, 16, ... 256.
template <int N> DEVICE void raw(float *out, const st_bf<64, 64> &a, const st_bf<256, 64> &b) {
  if (blockIdx.x != N / 8 - 1) {
    if constexpr (N < 256) raw<N + 8>(out, a, b);
    return;
  }
  float d[N / 2];
  EACH(i, N / 2) d[i] = 0.0f;
  const detail::shared_operand<st_bf<64, 64>, true> left(a);
  const detail::shared_operand<st_bf<256, 64>, true> right(b);
  ptx::wgmma_fence();
  ptx::fence_async_shared();
  EACH(k, 4) ptx::wgmma<ptx::BF16, ptx::BF16, 0, 0>(d, left.at(k), right.at(k), 1);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  float *plane = out + (N / 8 - 1) * 64 * 256;
  EACH(i, N / 2) {
    asm volatile("" : "+f"(d[i])::"memory");
    plane[256 * (16 * warpid() + laneid() / 4 + 8 * (i / 2 % 2)) + 8 * (i / 4) + 2 * (laneid() % 4) + i % 2] = d[i];
  }
}
TEST(every_n, 128)(float *out, const float *a, const float *b) {
  shared_allocator<> al(memory);
  auto &left = al.allocate<st_bf<64, 64>>();
  auto &right = al.allocate<st_bf<256, 64>>();
  fill_shared(left, a);
  fill_shared(right, b);
  __syncthreads();
  raw<8>(out, left, right);
}
