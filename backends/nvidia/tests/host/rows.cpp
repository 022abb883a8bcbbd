// warpwave/rows.cuh on the host: a warp's lanes one after the other, since none waits for another. An access that is not
// aligned to its own size traps (-fsanitize=alignment).
#include <cstdint>

#define __device__
#define __forceinline__ inline
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((uint64_t)high << 32 | low) >> shift % 32);
}
alignas(1024) inline unsigned char shared[4096];
inline const void *__cvta_shared_to_generic(unsigned at) { return shared + at; }
inline unsigned __cvta_generic_to_shared(const void *p) { return (unsigned)((const unsigned char *)p - shared); }
inline uint64_t __cvta_generic_to_global(const void *p) { return (uint64_t)p; }
#include "warpwave/rows.cuh"

template <int Cols> struct st {
  using T = uint16_t;
  static constexpr int rows = 16, cols = Cols, swizzle_bytes = Cols * 2;
};

template <int Cols, int Panels>
void write(const uint16_t *tile, uint16_t *to, long pitch, int row, int rows, int col, int cols) {
  constexpr int stride = 2048;
  for (int r = 0; r < 16; ++r) {
    for (int c = 0; c < Cols * Panels; ++c) {
      const unsigned at = (r * Cols * 2 + c % Cols * 2) ^ ww::swizzle_of<st<Cols>>(r);
      *(uint16_t *)(shared + c / Cols * stride + at) = tile[r * Cols * Panels + c];
    }
  }
  for (int lane = 0; lane < 32; ++lane) ww::write_rows<st<Cols>, Panels, stride>(0, lane, to, pitch, row, rows, col, cols);
}

// A tile of 16 rows by `width` columns, in one panel or in two.
extern "C" void write_tile(int width, const uint16_t *tile, uint16_t *to, long pitch, int row, int rows, int col, int cols) {
  switch (width) {
    case 16: return write<16, 1>(tile, to, pitch, row, rows, col, cols);
    case 32: return write<32, 1>(tile, to, pitch, row, rows, col, cols);
    case 64: return write<64, 1>(tile, to, pitch, row, rows, col, cols);
    case 128: return write<64, 2>(tile, to, pitch, row, rows, col, cols);
  }
}

extern "C" void copy_rows(const ww::row_copy *copy, int threads) {
  const int each = 2, count = copy->rows * copy->units;
  for (int first = 0; first < count; first += each * threads) {
    for (int thread = 0; thread < threads; ++thread) ww::copy_units<each>(*copy, first + thread, threads);
  }
}
