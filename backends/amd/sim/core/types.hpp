// Fixed-width names and the wave geometry shared by every file of the simulator.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace amdsim {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using f32 = float;
using f64 = double;

// 16-bit floats travel as bits; arith/ converts them.
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};

inline constexpr int kLanes = 64;
inline constexpr u64 kAllLanes = ~0ull;

// One vector register: 64 lanes of 32 bits. Multi-dword operands are consecutive rows.
using Row = u32[kLanes];

template <class To, class From>
inline To bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To out;
  std::memcpy(&out, &value, sizeof(To));
  return out;
}

}  // namespace amdsim
