// Exact decoding and correctly rounded encoding of every floating-point format of gfx942 and gfx950.
// Format table: CDNA4 ISA 7.3 table 30; the FNUZ forms of gfx942 are those of CDNA3 ISA 7.3.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace amdsim::arith {

enum class Specials : std::uint8_t {
  ieee,  // all-ones exponent: infinities and NaNs
  fn,    // no infinities, magnitude all ones is NaN
  fnuz,  // no infinities, no -0: its code is the only NaN
  none,  // every code is finite
};

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;

  constexpr int width() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr int min_exponent() const { return 1 - bias; }
  constexpr std::uint64_t sign_bit() const { return std::uint64_t{1} << (exponent_bits + mantissa_bits); }
  constexpr std::uint64_t hidden_bit() const { return std::uint64_t{1} << mantissa_bits; }
  constexpr std::uint64_t magnitude_mask() const { return sign_bit() - 1; }
  constexpr std::uint64_t infinity() const { return magnitude_mask() & ~(hidden_bit() - 1); }
  constexpr std::uint64_t max_finite() const {
    switch (specials) {
      case Specials::ieee:
        return infinity() - 1;
      case Specials::fn:
        return magnitude_mask() - 1;
      default:
        return magnitude_mask();
    }
  }
  constexpr std::uint64_t nan() const {
    switch (specials) {
      case Specials::ieee:
        return infinity() | (hidden_bit() >> 1);
      case Specials::fn:
        return magnitude_mask();
      case Specials::fnuz:
        return sign_bit();
      default:
        return max_finite();  // a format without NaN saturates
    }
  }
};

inline constexpr FloatFormat kF64{11, 52, 1023, Specials::ieee};
inline constexpr FloatFormat kF32{8, 23, 127, Specials::ieee};
inline constexpr FloatFormat kF16{5, 10, 15, Specials::ieee};
inline constexpr FloatFormat kBf16{8, 7, 127, Specials::ieee};
inline constexpr FloatFormat kFp8Ocp{4, 3, 7, Specials::fn};
inline constexpr FloatFormat kBf8Ocp{5, 2, 15, Specials::ieee};
inline constexpr FloatFormat kFp8Fnuz{4, 3, 8, Specials::fnuz};
inline constexpr FloatFormat kBf8Fnuz{5, 2, 16, Specials::fnuz};
inline constexpr FloatFormat kFp6{2, 3, 1, Specials::none};
inline constexpr FloatFormat kBf6{3, 2, 3, Specials::none};
inline constexpr FloatFormat kFp4{2, 1, 1, Specials::none};

// The numbering is that of MODE.round (CDNA3 ISA, shader MODE register).
enum class Rounding : std::uint8_t { nearest_even = 0, up = 1, down = 2, toward_zero = 3 };

// What a finite or infinite value beyond the largest finite one becomes (MODE.fp16_ovfl selects saturate).
enum class Overflow : std::uint8_t { special, saturate };

enum class NumberClass : std::uint8_t { zero, finite, infinite, nan };

// (-1)^negative * significand * 2^exponent, exactly; `sticky` stands for a nonzero tail below the last bit.
struct Exact {
  NumberClass kind = NumberClass::zero;
  bool negative = false;
  int exponent = 0;
  std::uint64_t significand = 0;
  bool sticky = false;
};

constexpr bool is_nan(const FloatFormat& format, std::uint64_t bits) {
  const std::uint64_t magnitude = bits & format.magnitude_mask();
  switch (format.specials) {
    case Specials::ieee:
      return magnitude > format.infinity();
    case Specials::fn:
      return magnitude == format.magnitude_mask();
    case Specials::fnuz:
      return bits == format.sign_bit();
    default:
      return false;
  }
}

constexpr Exact decode(const FloatFormat& format, std::uint64_t bits) {
  const std::uint64_t magnitude = bits & format.magnitude_mask();
  const bool negative = (bits & format.sign_bit()) != 0;
  if (is_nan(format, bits)) return {NumberClass::nan, negative, 0, magnitude, false};
  if (format.specials == Specials::ieee && magnitude == format.infinity())
    return {NumberClass::infinite, negative, 0, 0, false};
  if (magnitude == 0) return {NumberClass::zero, negative, 0, 0, false};
  const int field = static_cast<int>(magnitude >> format.mantissa_bits);
  const std::uint64_t fraction = magnitude & (format.hidden_bit() - 1);
  const std::uint64_t significand = field == 0 ? fraction : fraction | format.hidden_bit();
  const int exponent = (field == 0 ? 1 : field) - format.bias - format.mantissa_bits;
  return {NumberClass::finite, negative, exponent, significand, false};
}

inline double to_double(const FloatFormat& format, std::uint64_t bits) {
  const Exact value = decode(format, bits);
  switch (value.kind) {
    case NumberClass::nan:
      return std::bit_cast<double>(0x7ff8000000000000ull);
    case NumberClass::infinite:
      return value.negative ? -HUGE_VAL : HUGE_VAL;
    default:
      break;
  }
  const double magnitude = std::ldexp(static_cast<double>(value.significand), value.exponent);
  return value.negative ? -magnitude : magnitude;
}

namespace detail {

constexpr bool rounds_away(Rounding mode, bool negative, bool odd, bool half, bool below) {
  switch (mode) {
    case Rounding::nearest_even:
      return half && (below || odd);
    case Rounding::up:
      return !negative && (half || below);
    case Rounding::down:
      return negative && (half || below);
    default:
      return false;
  }
}

constexpr std::uint64_t overflow_code(const FloatFormat& format, bool negative, Rounding mode, Overflow overflow) {
  const bool toward =
      mode == Rounding::toward_zero || (mode == Rounding::up && negative) || (mode == Rounding::down && !negative);
  const std::uint64_t sign = negative ? format.sign_bit() : 0;
  if (overflow == Overflow::saturate || toward || format.specials == Specials::none) return sign | format.max_finite();
  if (format.specials == Specials::ieee) return sign | format.infinity();
  return format.specials == Specials::fnuz ? format.nan() : sign | format.nan();
}

}  // namespace detail

// Rounds an exact finite value to `format`; subnormal results are kept.
constexpr std::uint64_t round_finite(const FloatFormat& format, const Exact& value, Rounding mode, Overflow overflow) {
  const int top = 63 - std::countl_zero(value.significand) + value.exponent;
  const int exponent = top > format.min_exponent() ? top : format.min_exponent();
  const int shift = exponent - format.mantissa_bits - value.exponent;
  std::uint64_t kept = 0;
  bool half = false;
  bool below = value.sticky;
  if (shift <= 0) {
    kept = value.significand << -shift;
  } else {
    kept = shift < 64 ? value.significand >> shift : 0;
    half = shift <= 64 && ((value.significand >> (shift - 1)) & 1) != 0;
    const std::uint64_t tail = shift > 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (shift - 1)) - 1;
    below = below || (value.significand & tail) != 0;
  }
  if (detail::rounds_away(mode, value.negative, (kept & 1) != 0, half, below)) ++kept;
  const std::uint64_t code =
      kept + (static_cast<std::uint64_t>(exponent - format.min_exponent()) << format.mantissa_bits);
  if (code > format.max_finite()) return detail::overflow_code(format, value.negative, mode, overflow);
  if (code == 0 && format.specials == Specials::fnuz) return 0;
  return (value.negative ? format.sign_bit() : 0) | code;
}

constexpr std::uint64_t encode(const FloatFormat& format, const Exact& value, Rounding mode = Rounding::nearest_even,
                               Overflow overflow = Overflow::special) {
  const std::uint64_t sign = value.negative ? format.sign_bit() : 0;
  switch (value.kind) {
    case NumberClass::zero:
      return format.specials == Specials::fnuz ? 0 : sign;
    case NumberClass::nan:
      return format.specials == Specials::fnuz ? format.nan() : sign | format.nan();
    // Infinity follows the overflow rule whatever the rounding mode.
    case NumberClass::infinite:
      return detail::overflow_code(format, value.negative, Rounding::nearest_even, overflow);
    default:
      return round_finite(format, value, mode, overflow);
  }
}

inline std::uint64_t encode(const FloatFormat& format, double value, Rounding mode = Rounding::nearest_even,
                            Overflow overflow = Overflow::special) {
  return encode(format, decode(kF64, std::bit_cast<std::uint64_t>(value)), mode, overflow);
}

// E8M0 block scale: 2^(code - 127), 0xff is NaN (CDNA4 ISA 7.2).
inline constexpr std::uint8_t kE8m0Nan = 0xff;
constexpr int e8m0_exponent(std::uint8_t code) { return static_cast<int>(code) - 127; }

}  // namespace amdsim::arith
