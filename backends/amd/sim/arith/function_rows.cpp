#include "function_rows.hpp"

#include "transcendental.hpp"

namespace amdsim::arith {
namespace {

struct alignas(64) Floats {
  f32 lane[kLanes];
};
struct alignas(64) Words {
  u32 lane[kLanes];
};

// A NaN source gives itself, quieted; without one the operation was invalid.
WARPWAVE_INLINE u32 invalid_result(f32 x) { return pick(x != x, bits<u32>(quieted(x)), kNan32); }

// Returns whether any lane is special: not positive, normal and finite.
WARPWAVE_MULTIVERSION bool split_row(Floats& significand, Floats& exponent, const u32* a) {
  u32 special = 0;
  for (int l = 0; l < kLanes; ++l) {
    const u32 source = flush32(a[l]);
    const bool ordinary = source - 1 < 0x7f7fffffu;
    const detail::Split parts = detail::split(bits<f32>(pick(ordinary, source, 0x3f800000u)));
    significand.lane[l] = parts.significand, exponent.lane[l] = f32(parts.exponent);
    special |= u32(!ordinary);
  }
  return special != 0;
}
WARPWAVE_MULTIVERSION void log2_values(Floats& out, const Floats& significand, const Floats& exponent) {
  for (int l = 0; l < kLanes; ++l) out.lane[l] = f32(detail::log2_of(significand.lane[l], exponent.lane[l]));
}
WARPWAVE_MULTIVERSION void finish_log2(u32* d, const Floats& values, const u32* a) {
  for (int l = 0; l < kLanes; ++l) {
    const u32 source = flush32(a[l]), zero_or_nan = pick((source & 0x7fffffffu) == 0, 0xff800000u, invalid_result(bits<f32>(a[l])));
    const u32 special = pick(source == 0x7f800000u, source, zero_or_nan);
    d[l] = pick(source - 1 < 0x7f7fffffu, bits<u32>(values.lane[l]), special);
  }
}

// Returns whether any lane is special: zero, subnormal, beyond 256 turns, or no number.
WARPWAVE_MULTIVERSION bool reduce_row(Floats& rest, Words& quadrant, const u32* a, u32 quarters) {
  u32 special = 0;
  for (int l = 0; l < kLanes; ++l) {
    const u32 magnitude = a[l] & 0x7fffffffu;
    const bool ordinary = magnitude - 0x800000u <= 0x43000000u;  // 256 is 0x43800000
    const detail::Turns turns = detail::reduced(bits<f32>(pick(ordinary, a[l], 0u)));
    rest.lane[l] = turns.rest, quadrant.lane[l] = turns.quadrant + quarters;
    special |= u32(!ordinary);
  }
  return special != 0;
}
WARPWAVE_MULTIVERSION void sin_values(Floats& sin, Floats& cos, const Floats& rest) {
  for (int l = 0; l < kLanes; ++l) {
    const f64 turns = rest.lane[l];
    sin.lane[l] = f32(detail::sin_of(turns)), cos.lane[l] = f32(detail::cos_of(turns));
  }
}
struct TurnValues {
  Floats sin, cos;
  Words quadrant;
  bool special;
  WARPWAVE_INLINE f32 at(int l) const {
    const f32 value = pick((quadrant.lane[l] & 1) != 0, cos.lane[l], sin.lane[l]);
    return pick((quadrant.lane[l] & 2) != 0, 0.0f - value, value);
  }
};
TurnValues turns_row(const u32* a, u32 quarters) {
  Floats rest;
  TurnValues values;
  values.special = reduce_row(rest, values.quadrant, a, quarters);
  sin_values(values.sin, values.cos, rest);
  return values;
}

WARPWAVE_MULTIVERSION void finish_ordinary(u32* d, const TurnValues& values) {
  for (int l = 0; l < kLanes; ++l) d[l] = bits<u32>(values.at(l));
}
// A zero keeps its sign; beyond 256 turns the result is that of 0 without one.
WARPWAVE_MULTIVERSION void finish_sin(u32* d, const TurnValues& values, const u32* a) {
  for (int l = 0; l < kLanes; ++l) {
    const u32 source = flush32(a[l]), magnitude = a[l] & 0x7fffffffu;
    const u32 number = pick((source & 0x7fffffffu) == 0, source, flush32(bits<u32>(values.at(l))));
    const u32 outside = pick(magnitude < 0x7f800000u, 0u, invalid_result(bits<f32>(a[l])));
    d[l] = pick(magnitude <= 0x43800000u, number, outside);
  }
}
WARPWAVE_MULTIVERSION void finish_cos(u32* d, const TurnValues& values, const u32* a) {
  for (int l = 0; l < kLanes; ++l) {
    const u32 magnitude = a[l] & 0x7fffffffu;
    const u32 outside = pick(magnitude < 0x7f800000u, 0x3f800000u, invalid_result(bits<f32>(a[l])));
    d[l] = pick(magnitude <= 0x43800000u, bits<u32>(values.at(l)), outside);
  }
}

WARPWAVE_MULTIVERSION void first_rsqrt(Floats& source, Floats& first, const u32* a) {
  for (int l = 0; l < kLanes; ++l) {
    source.lane[l] = bits<f32>(flush32(a[l]));
    first.lane[l] = 1.0f / __builtin_sqrtf(source.lane[l]);
  }
}
// One Newton step in f64 on the f32 quotient.
WARPWAVE_MULTIVERSION void refine_rsqrt(Floats& out, const Floats& source, const Floats& first) {
  for (int l = 0; l < kLanes; ++l) {
    const f64 y = first.lane[l], error = __builtin_fma(-(f64(source.lane[l]) * y), y, 1.0);
    out.lane[l] = f32(__builtin_fma(0.5 * y, error, y));
  }
}
// Zeros (whose sign is kept) and infinities have their result before the step, which makes a NaN of it.
WARPWAVE_MULTIVERSION void finish_rsqrt(u32* d, const Floats& refined, const Floats& first, const u32* a) {
  for (int l = 0; l < kLanes; ++l) {
    const f32 value = pick(refined.lane[l] == refined.lane[l], refined.lane[l], first.lane[l]);
    d[l] = pick(value == value, bits<u32>(value), invalid_result(bits<f32>(a[l])));
  }
}

}  // namespace

void log2_row(u32* d, const u32* a) {
  Floats significand, exponent, values;
  const bool special = split_row(significand, exponent, a);
  log2_values(values, significand, exponent);
  if (special) return finish_log2(d, values, a);
  std::memcpy(d, values.lane, sizeof values);
}
void rsqrt_row(u32* d, const u32* a) {
  Floats source, first, refined;
  first_rsqrt(source, first, a);
  refine_rsqrt(refined, source, first);
  finish_rsqrt(d, refined, first, a);
}
void sin_row(u32* d, const u32* a) {
  const TurnValues values = turns_row(a, 0);
  if (values.special) return finish_sin(d, values, a);
  finish_ordinary(d, values);
}
void cos_row(u32* d, const u32* a) {
  const TurnValues values = turns_row(a, 1);
  if (values.special) return finish_cos(d, values, a);
  finish_ordinary(d, values);
}

}  // namespace amdsim::arith
