// Rows that begin anywhere, moved in 16-byte units: tiles in shared memory to a tensor, and tensors to aligned copies.
#pragma once
#include "ptx/base.cuh"

namespace ww {

constexpr int UNIT = 16;  // bytes of the widest access

// 16-byte units of a row of a swizzled tile change places by its number.
template <class ST> DEVICE u32 swizzle_of(int row) {
  if constexpr (ST::swizzle_bytes == 128) return (row >> 0 & 1) * 16 ^ (row >> 1 & 1) * 32 ^ (row >> 2 & 1) * 64;
  else if constexpr (ST::swizzle_bytes == 64) return (row >> 1 & 1) * 16 ^ (row >> 2 & 1) * 32;
  else return (row >> 2 & 1) * 16;
}

// The 16 bytes that begin `skipped` (0 to 15) bytes inside `low`, which `high` follows. Lanes may differ.
DEVICE uint4 unit_across(uint4 low, uint4 high, u32 skipped) {
  const u32 w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  u32 x[6], y[5];
  EACH(i, 6) x[i] = skipped & 8 ? w[i + 2] : w[i];
  EACH(i, 5) y[i] = skipped & 4 ? x[i + 1] : x[i];
  const u32 bits = skipped % 4 * 8;
  return uint4{__funnelshift_r(y[0], y[1], bits), __funnelshift_r(y[1], y[2], bits), __funnelshift_r(y[2], y[3], bits),
               __funnelshift_r(y[3], y[4], bits)};
}

// A 16-byte unit of 2-byte elements of a row at `to`, of which elements [begin, end) are the row's.
struct row_part {
  u16 *to;
  uint4 x;
  int begin, end;
};

// Its elements, which are not all.
DEVICE void store_part(const row_part &part) {
  const int begin = part.begin, end = part.end, count = end - begin;
  u16 *const to = part.to;
  const uint4 x = part.x;
  if (count <= 0) return;
  const u64 halves[2] = {x.x | (u64)x.y << 32, x.z | (u64)x.w << 32};
  const auto half_of = [&](int at) { return at & 4 ? halves[1] : halves[0]; };
  const auto pair_at = [&](int at) { return (u32)(half_of(at) >> (at & 2) * 16); };
  const auto one_at = [&](int at) { return (u16)(half_of(at) >> (at & 3) * 16); };
  if (begin == 0 || end == 8) {  // powers of two, the small ones at the ragged side
    const bool ragged_end = begin == 0;
    const int one = ragged_end ? count & 6 : begin, pair = ragged_end ? count & 4 : begin + (count & 1);
    if (count & 4) *(u64 *)(to + (ragged_end ? 0 : 4)) = half_of(ragged_end ? 0 : 4);
    if (count & 2) *(u32 *)(to + pair) = pair_at(pair);
    if (count & 1) to[one] = one_at(one);
  } else {
    EACH(i, 8) if (i >= begin && i < end) to[i] = one_at(i);
  }
}

// A warp writes 16 rows by `Panels` tiles of one panel of 2-byte elements, `Stride` bytes apart from the shared address
// `from` on, to a tensor: `to` is the place of their first element, `pitch` elements between its rows; any multiple of
// an element. `row` and `col` are its coordinates; what lies outside `rows` x `cols` is not written.
template <class ST, int Panels, int Stride, class T>
DEVICE void write_rows(u32 from, int lane, T *to, long pitch, int row, int rows, int col, int cols) {
  static_assert(sizeof(T) == 2 && ST::rows == 16 && ST::cols * sizeof(T) == ST::swizzle_bytes, "a warp's panels");
  constexpr int per_panel = ST::cols / 8, across = Panels * per_panel, width = Panels * ST::cols;
  const u8 *const tile = (const u8 *)__cvta_shared_to_generic(from);
  const int first = col < 0 ? -col : 0, last = cols - col < width ? cols - col : width;
  const auto unit_at = [&](int r, int unit) {
    const int n = unit < 0 ? 0 : unit < across ? unit : across - 1;  // beyond the tile: not used
    const u32 at = (r * ST::swizzle_bytes + n % per_panel * 16) ^ swizzle_of<ST>(r);
    return *(const uint4 *)(tile + n / per_panel * Stride + at);
  };
  const auto unit_of = [&](int r, int unit) {
    if ((u32)row + (u32)r >= (u32)rows) return row_part{};
    T *const start = to + r * pitch;
    const int ahead = (int)((u64)start % UNIT / 2), element = unit * 8 - ahead;
    const int before = unit - (ahead > 0);
    const uint4 x = unit_across(unit_at(r, before), unit_at(r, before + 1), UNIT - 2 * ahead & UNIT - 1);
    return row_part{(u16 *)start + element, x, element < first ? first - element : 0,
                    element + 8 > last ? last - element : 8};
  };
  EACH(i, across / 2) {
    const int n = i * 32 + lane;
    const row_part part = unit_of(n / across, n % across);
    if (part.begin == 0 && part.end == 8) *(uint4 *)part.to = part.x;
  }
  // Where the first and the last element lie in units of their own; one if that is the same.
  const int r = lane / 2;
  const int ahead = (int)((u64)(to + r * pitch) % UNIT / 2), one = (first + ahead) / 8, other = (last - 1 + ahead) / 8;
  if (first < last && (lane % 2 == 0 || one != other)) {
    const row_part part = unit_of(r, lane % 2 ? other : one);
    if (part.begin > 0 || part.end < 8) store_part(part);
  }
}

// -- aligned copies of tensors ---------------------------------------------------------------------------------

// A tensor's rows, `units` units each, to rows that begin `pitch` bytes apart at multiples of a unit. Strides are bytes,
// of the axes but the last one, behind which there are axes of one element. Nothing outside [from, end) is read; what a
// row's last unit has beyond the row is undefined.
constexpr int COPIED_AXES = 4, COPIES = 8;
struct row_copy {
  const u8 *from, *end;
  u8 *to;
  long strides[COPIED_AXES];
  long pitch;
  int extents[COPIED_AXES];
  int rows, units;
};
struct row_copies {
  row_copy of[COPIES];
};

// An aligned unit, as far as it lies in [begin, end).
DEVICE uint4 load_within(const u8 *p, const u8 *begin, const u8 *end) {
  if (p >= begin && p + UNIT <= end) return *(const uint4 *)p;
  u32 x[4] = {};
  EACH(i, UNIT) if (p + i >= begin && p + i < end) x[i / 4] |= (u32)p[i] << i % 4 * 8;
  return uint4{x[0], x[1], x[2], x[3]};
}

// Unit `index` of the copy: what it will be, and where it goes.
DEVICE uint4 copied_unit(const row_copy &copy, int index, u8 *&to) {
  u32 row = (u32)index / (u32)copy.units;
  const long unit = (u32)index % (u32)copy.units;
  to = copy.to + row * copy.pitch + unit * UNIT;
  const u8 *p = copy.from + unit * UNIT;
  for (int axis = COPIED_AXES - 1; axis > 0; --axis) {
    if (copy.extents[axis] == 1) continue;
    p += row % (u32)copy.extents[axis] * copy.strides[axis];
    row /= (u32)copy.extents[axis];
  }
  p += row * copy.strides[0];
  const u32 skipped = (u64)p % UNIT;
  const u8 *const low = p - skipped;
  return unit_across(load_within(low, copy.from, copy.end), load_within(low + UNIT, copy.from, copy.end), skipped);
}

// A thread's share: `Each` units, `threads` apart, all loaded before the first is written.
template <int Each> DEVICE void copy_units(const row_copy &copy, int first, int threads) {
  const int count = copy.rows * copy.units;
  uint4 x[Each];
  u8 *to[Each];
  EACH(i, Each) if (first + i * threads < count) x[i] = copied_unit(copy, first + i * threads, to[i]);
  EACH(i, Each) if (first + i * threads < count) *(uint4 *)to[i] = x[i];
}

}  // namespace ww
