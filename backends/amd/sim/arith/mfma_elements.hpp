// Element types of matrix operands and their conversion into factors.
#pragma once

#include <array>
#include <cstdint>

#include "formats.hpp"
#include "mfma_factors.hpp"

namespace amdsim::arith {

enum class Element : std::uint8_t {
  f32,
  xf32,
  f64,
  f16,
  bf16,
  fp8_ocp,
  bf8_ocp,
  fp8_fnuz,
  bf8_fnuz,
  fp6,
  bf6,
  fp4,
  i8
};

constexpr int element_bits(Element element) {
  switch (element) {
    case Element::f64:
      return 64;
    case Element::f32:
    case Element::xf32:
      return 32;
    case Element::f16:
    case Element::bf16:
      return 16;
    case Element::fp6:
    case Element::bf6:
      return 6;
    case Element::fp4:
      return 4;
    default:
      return 8;
  }
}

constexpr const FloatFormat& format_of(Element element) {
  switch (element) {
    case Element::f64:
      return kF64;
    case Element::f16:
      return kF16;
    case Element::bf16:
      return kBf16;
    case Element::fp8_ocp:
      return kFp8Ocp;
    case Element::bf8_ocp:
      return kBf8Ocp;
    case Element::fp8_fnuz:
      return kFp8Fnuz;
    case Element::bf8_fnuz:
      return kBf8Fnuz;
    case Element::fp6:
      return kFp6;
    case Element::bf6:
      return kBf6;
    case Element::fp4:
      return kFp4;
    default:
      return kF32;
  }
}

// Any format of at most 16 bits is exact in f32; NaNs become the positive quiet one.
constexpr std::uint32_t widen_to_f32(const FloatFormat& format, std::uint32_t bits) {
  Exact value = decode(format, bits);
  if (value.kind == NumberClass::nan) value.negative = false;
  return static_cast<std::uint32_t>(encode(kF32, value));
}

// f16 to f32 without branches on the common path.
constexpr std::uint32_t f16_to_f32_bits(std::uint32_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t field = (bits >> 10) & 0x1f;
  if (field == 0x1f) return sign | 0x7f800000u | ((bits & 0x3ff) << 13) | ((bits & 0x3ff) != 0 ? 0x400000u : 0);
  if (field == 0) return widen_to_f32(kF16, bits);
  return sign | ((field + 112) << 23) | ((bits & 0x3ff) << 13);
}

namespace detail {

template <int Codes>
constexpr std::array<std::uint32_t, Codes> widening_table(const FloatFormat& format) {
  std::array<std::uint32_t, Codes> table{};
  for (int code = 0; code < Codes; ++code) table[code] = widen_to_f32(format, code);
  return table;
}

inline constexpr auto kFp8OcpTable = widening_table<256>(kFp8Ocp);
inline constexpr auto kBf8OcpTable = widening_table<256>(kBf8Ocp);
inline constexpr auto kFp8FnuzTable = widening_table<256>(kFp8Fnuz);
inline constexpr auto kBf8FnuzTable = widening_table<256>(kBf8Fnuz);
inline constexpr auto kFp6Table = widening_table<64>(kFp6);
inline constexpr auto kBf6Table = widening_table<64>(kBf6);
inline constexpr auto kFp4Table = widening_table<16>(kFp4);

}  // namespace detail

// The f32 bits of an element of at most 32 bits; xf32 drops the low 13 bits of its f32 source (MMA-Sim).
constexpr std::uint32_t element_to_f32_bits(Element element, std::uint32_t raw) {
  switch (element) {
    case Element::xf32:
      return raw & ~std::uint32_t{0x1fff};
    case Element::f16:
      return f16_to_f32_bits(raw);
    case Element::bf16:
      return raw << 16;
    case Element::fp8_ocp:
      return detail::kFp8OcpTable[raw];
    case Element::bf8_ocp:
      return detail::kBf8OcpTable[raw];
    case Element::fp8_fnuz:
      return detail::kFp8FnuzTable[raw];
    case Element::bf8_fnuz:
      return detail::kBf8FnuzTable[raw];
    case Element::fp6:
      return detail::kFp6Table[raw];
    case Element::bf6:
      return detail::kBf6Table[raw];
    case Element::fp4:
      return detail::kFp4Table[raw];
    default:
      return raw;
  }
}

inline void set_element(Factors& factors, int at, Element element, std::uint32_t raw) {
  factors.set(at, element_to_f32_bits(element, raw), format_of(element).min_exponent());
}

}  // namespace amdsim::arith
