#include "small_rows.hpp"

#include <stdexcept>

#include "../arith/mfma_elements.hpp"
#include "../arith/multiversion.hpp"
#include "../arith/quick_convert.hpp"

namespace amdsim {
namespace {

using namespace arith;

template <const FloatFormat& Format>
WARPWAVE_INLINE void narrowed(u32* codes, const f32* values, u32 over) {
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l) codes[l] = to_small<Format>(values[l], over);
}
template <const FloatFormat& Format>
WARPWAVE_INLINE void narrowed(u32* codes, const f32* values, const u32* random, u32 over) {
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l) codes[l] = to_small_stochastic<Format>(values[l], random[l], over);
}

// One case per format; `Row` is called with the format as its template argument.
#define AMDSIM_EACH_SMALL_FORMAT(CASE)                                                        \
  CASE(kFp8Ocp) CASE(kBf8Ocp) CASE(kFp8Fnuz) CASE(kBf8Fnuz) CASE(kFp6) CASE(kBf6) CASE(kFp4)

[[noreturn]] void unknown_format() { throw std::logic_error("not one of the small formats"); }

}  // namespace

SmallFormat small_format(const FloatFormat& format, Overflow overflow) {
#define AMDSIM_CASE(F) \
  if (&format == &F) return {&format, overflow_code<F>(overflow)};
  AMDSIM_EACH_SMALL_FORMAT(AMDSIM_CASE)
#undef AMDSIM_CASE
  unknown_format();
}

WARPWAVE_MULTIVERSION void narrow_row(u32* codes, const f32* values, const SmallFormat& to) {
#define AMDSIM_CASE(F) \
  if (to.format == &F) return narrowed<F>(codes, values, to.over);
  AMDSIM_EACH_SMALL_FORMAT(AMDSIM_CASE)
#undef AMDSIM_CASE
  unknown_format();
}

WARPWAVE_MULTIVERSION void narrow_row_stochastic(u32* codes, const f32* values, const u32* random, const SmallFormat& to) {
#define AMDSIM_CASE(F) \
  if (to.format == &F) return narrowed<F>(codes, values, random, to.over);
  AMDSIM_EACH_SMALL_FORMAT(AMDSIM_CASE)
#undef AMDSIM_CASE
  unknown_format();
}

const u32* values_of(const FloatFormat& format) {
#define AMDSIM_CASE(F, Table) \
  if (&format == &F) return arith::detail::Table.data();
  AMDSIM_CASE(kFp8Ocp, kFp8OcpTable)
  AMDSIM_CASE(kBf8Ocp, kBf8OcpTable)
  AMDSIM_CASE(kFp8Fnuz, kFp8FnuzTable)
  AMDSIM_CASE(kBf8Fnuz, kBf8FnuzTable)
  AMDSIM_CASE(kFp6, kFp6Table)
  AMDSIM_CASE(kBf6, kBf6Table)
  AMDSIM_CASE(kFp4, kFp4Table)
#undef AMDSIM_CASE
  unknown_format();
}

WARPWAVE_MULTIVERSION void scale_row(f32* values, const u32* scales, Scaling how) {
  if (how == Scaling::divide)
    for (int l = 0; l < kLanes; ++l) values[l] = times_scale<true>(values[l], scales[l]);
  else
    for (int l = 0; l < kLanes; ++l) values[l] = times_scale<false>(values[l], scales[l]);
}

}  // namespace amdsim
