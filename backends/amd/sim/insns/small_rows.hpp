// Conversions of whole rows of lanes to and from the 8-, 6- and 4-bit formats, with and without block scales.
#pragma once

#include "../arith/formats.hpp"
#include "../core/types.hpp"

namespace amdsim {

// What a row is converted to or from: the format, and the code for values beyond its range.
struct SmallFormat {
  const arith::FloatFormat* format;
  u32 over;
};
SmallFormat small_format(const arith::FloatFormat& format, arith::Overflow overflow);

// Codes of 64 f32, to nearest even or with stochastic rounding.
void narrow_row(u32* codes, const f32* values, const SmallFormat& to);
void narrow_row_stochastic(u32* codes, const f32* values, const u32* random, const SmallFormat& to);

// The values of all codes of a format as f32 bits.
const u32* values_of(const arith::FloatFormat& format);

// Times, or divided by, the powers of two whose exponents the scales hold.
enum class Scaling { multiply, divide };
void scale_row(f32* values, const u32* scales, Scaling how);

}  // namespace amdsim
