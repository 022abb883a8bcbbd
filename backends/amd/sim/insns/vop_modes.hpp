// Variants of element-wise instructions whose lane function depends on a modifier or on MODE.
#pragma once

#include <utility>

#include "../arith/floats.hpp"
#include "shadows.hpp"
#include "vop.hpp"

namespace amdsim {

inline Desc with_body(Desc d, LaneFn body) {
  d.body = reinterpret_cast<const void*>(body);
  return d;
}

// Integer clamp: `Plain` wraps, `Saturating` does not.
template <auto Plain, auto Saturating>
void clamp_body(LaneArgs& io) {
  if (io.in->mod.clamp)
    vop_detail::lanes<Saturating>(io);
  else
    vop_detail::lanes<Plain>(io);
}
template <auto Plain, auto Saturating>
Desc vop_clamp(const char* name, u32 flags = 0) {
  return with_body(vop<Plain>(name, flags), clamp_body<Plain, Saturating>);
}

// MODE.ieee: Op<true> quiets signalling NaNs, Op<false> does not.
template <template <bool> class Op>
void ieee_body(LaneArgs& io) {
  if (io.mode->ieee)
    vop_detail::lanes<Op<true>{}>(io);
  else
    vop_detail::lanes<Op<false>{}>(io);
}
template <template <bool> class Op>
Desc vop_ieee(const char* name, u32 flags = 0) {
  return with_body(vop<Op<true>{}>(name, flags), ieee_body<Op>);
}

inline arith::HalfMode half_mode(const Mode& mode) {
  return {static_cast<arith::Rounding>(mode.round64),
          mode.fp16_ovfl ? arith::Overflow::saturate : arith::Overflow::special};
}
inline bool half_is_plain(const Mode& mode) { return mode.round64 == 0 && !mode.fp16_ovfl; }

// f16 arithmetic: `Quick` is to nearest even without saturation, `Slow` takes a HalfMode after its operands.
template <auto Slow, class R, class... A, std::size_t... I>
void half_lanes(LaneArgs& io, R (*)(A...), std::index_sequence<I...>) {
  const u32* const p[3] = {io.a, io.b, io.c};
  const arith::HalfMode mode = half_mode(*io.mode);
  for (int l = 0; l < kLanes; ++l)
    LaneType<R>::store(io.d, l, Slow(LaneType<std::remove_cvref_t<A>>::load(p[I], l)..., mode));
}
template <auto Quick, auto Slow, class C, class R, class... A>
void half_dispatch(LaneArgs& io, R (C::*)(A...) const) {
  if (half_is_plain(*io.mode)) return vop_detail::lanes<Quick>(io);
  half_lanes<Slow>(io, static_cast<R (*)(A...)>(nullptr), std::index_sequence_for<A...>{});
}
template <auto Quick, auto Slow>
void half_body(LaneArgs& io) {
  half_dispatch<Quick, Slow>(io, &decltype(Quick)::operator());
}
template <auto Quick, auto Slow>
Desc vop_half(const char* name, u32 flags = 0) {
  return with_body(vop<Quick>(name, flags), half_body<Quick, Slow>);
}
template <auto Quick, auto Slow>
Desc vop_half_acc(const char* name, u32 flags = 0) {
  return with_body(vop_acc<Quick>(name, flags), half_body<Quick, Slow>);
}

// The 16-bit instructions that GFX9 introduced keep the half of the destination they do not write; the older ones
// clear it (LLVM, GCNSubtarget::zeroesHigh16BitsOfDest). io.d holds the old destination because of kReadsDst.
void replace_low_halves(u32* d, const u32* fresh);
void clear_high_halves(u32* d);
template <LaneFn Body>
void keep_half_body(LaneArgs& io) {
  alignas(64) u32 fresh[kLanes];
  u32* const d = std::exchange(io.d, fresh);
  Body(io);
  replace_low_halves(d, fresh);
  io.d = d;
}
template <LaneFn Body>
Desc keep_half(Desc d) {
  d.flags |= kReadsDst | kPartial;
  d.shadow = shadow_half;
  return with_body(d, keep_half_body<Body>);
}
template <auto F>
Desc vop_keep(const char* name, u32 flags = 0) {
  return keep_half<vop_detail::lanes<F>>(vop<F>(name, flags));
}

// 950 only / 942 only.
inline Desc only(Targets target, Desc d) {
  d.targets = target;
  return d;
}

}  // namespace amdsim
