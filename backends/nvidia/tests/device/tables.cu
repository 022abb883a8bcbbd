// Layouts as the headers compute them, as tables in the compiled module; no kernel.
#include "common.cuh"

template <int N> struct table {
  int v[N];
};
template <int N, class F> DEVICE constexpr table<N> tabulated(F f) {
  table<N> t{};
  for (int i = 0; i < N; ++i) t.v[i] = f(i);
  return t;
}

// Of a tile of two by two base tiles: rows and columns of all items of all lanes; the items of its vectors.
#define TILE(name, T, L) \
  using tile_##name = rt<T, 32, 2 * TILE_COL_DIM<T>, L>; \
  constexpr int items_##name = tile_##name::elements_per_thread; \
  extern "C" __device__ table<32 * items_##name> rows_##name = tabulated<32 * items_##name>( \
      [](int i) { return detail::item_row<tile_##name>(i / items_##name, i % items_##name); }); \
  extern "C" __device__ table<32 * items_##name> cols_##name = tabulated<32 * items_##name>( \
      [](int i) { return detail::item_col<tile_##name>(i / items_##name, i % items_##name); });
TILE(f32_row, float, row_l)
TILE(f32_col, float, col_l)
TILE(bf16_row, bf16, row_l)
TILE(bf16_col, bf16, col_l)
TILE(fp8_row, fp8e4m3, row_l)

#define VECTORS(name) \
  extern "C" __device__ table<items_##name> row_vec_##name = \
      tabulated<items_##name>([](int i) { return detail::row_vec_item<tile_##name>(i); }); \
  extern "C" __device__ table<items_##name> col_vec_##name = \
      tabulated<items_##name>([](int i) { return detail::col_vec_item<tile_##name>(i); });
VECTORS(bf16_row)
VECTORS(bf16_col)

#define VECTOR(name) \
  extern "C" __device__ table<32 * 8> elements_##name = tabulated<32 * 8>( \
      [](int i) { return detail::vector_element<rv_fl<64, name##_l>>(i / 8, i % 8); });
VECTOR(align)
VECTOR(ortho)
VECTOR(naive)

// Byte addresses in a shared tile that begins at 64 KiB, row by row; its panel width first.
#define SHARED_TILE(name, T, R, C, ...) \
  using shared_##name = st<T, R, C, true, ##__VA_ARGS__>; \
  extern "C" __device__ table<R * C + 1> shared_##name##_addresses = tabulated<R * C + 1>([](int i) { \
    return i == 0 ? shared_##name::swizzle_bytes \
                  : (int)shared_##name::swizzled(65536 + shared_##name::offset((i - 1) / C, (i - 1) % C)) - 65536; \
  });
SHARED_TILE(bf16_16, bf16, 16, 16)
SHARED_TILE(bf16_32, bf16, 16, 32)
SHARED_TILE(bf16_48, bf16, 32, 48)
SHARED_TILE(bf16_64, bf16, 32, 64)
SHARED_TILE(bf16_96, bf16, 16, 96)
SHARED_TILE(bf16_192, bf16, 16, 192)
SHARED_TILE(f32_16, float, 32, 16)
SHARED_TILE(f32_64, float, 16, 64)
SHARED_TILE(fp8_32, fp8e4m3, 32, 32)
SHARED_TILE(fp8_64, fp8e4m3, 16, 64)
SHARED_TILE(fp8_96, fp8e4m3, 16, 96)
SHARED_TILE(fp8_128, fp8e4m3, 16, 128)
SHARED_TILE(bf16_64_narrow, bf16, 16, 64, 32)

// Descriptors of an operand at address 0x4000: two halves of 32 bits, then how far four k steps go.
#define OPERAND(name, T, R, C, major) \
  using operand_##name = detail::shared_operand<st<T, R, C>, major>; \
  extern "C" __device__ table<6> operand_##name##_descriptor = tabulated<6>([](int i) { \
    const u64 d = operand_##name::described(0x4000); \
    return i == 0 ? (int)(u32)d : i == 1 ? (int)(u32)(d >> 32) : operand_##name::advance(i - 2); \
  });
OPERAND(k_128, bf16, 64, 128, true)
OPERAND(k_64, bf16, 64, 32, true)
OPERAND(k_32, bf16, 128, 16, true)
OPERAND(k_fp8, fp8e4m3, 128, 256, true)
OPERAND(mn_128, bf16, 64, 256, false)
OPERAND(mn_64, bf16, 64, 32, false)
OPERAND(mn_32, bf16, 64, 48, false)
