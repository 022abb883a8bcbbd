// How a VALU instruction is written: one lambda on one lane, in the words of the ISA manual.
//
//   r.add(vop<[](f32 a, f32 b) { return a + b; }>("v_add_f32"));
//
// The lambda's parameter and result types give the operand types, the width, how constants are read and how
// neg/abs/clamp/omod act. DPP, SDWA, op_sel of 16-bit operands, EXEC, hazards, waits and undefined values are
// handled by the core around the lambda.
#pragma once

#include <type_traits>

#include "../arith/multiversion.hpp"
#include "../core/registry.hpp"
#include "../core/wave.hpp"

namespace amdsim {

// Rows of 64 lanes; an operand of two dwords is two consecutive rows. d may be the same array as a source.
struct LaneArgs {
  u32* d = nullptr;
  const u32* a = nullptr;
  const u32* b = nullptr;
  const u32* c = nullptr;
  u64 exec = 0;      // active lanes (results of other lanes are discarded)
  u64 mask_in = 0;   // lane mask operand: carry in, v_cndmask select, v_div_fmas vcc
  u64 mask_out = 0;  // lane mask result: v_cmp, carry out; inactive lanes are cleared by the core
  const Inst* in = nullptr;
  const Mode* mode = nullptr;
  const Target* target = nullptr;
};
using LaneFn = void (*)(LaneArgs&);

// Executes a LaneFn with operand fetch, modifiers, EXEC and write-back. Chosen for every vop/vcmp entry.
void exec_valu(Wave&, const Inst&);
// The same for an instruction without modifiers, short where all lanes are on, defined, and MODE is the usual one.
void exec_plain(Wave&, const Inst&);

// Typed loads and stores of one lane.
template <class T>
struct LaneType;
#define AMDSIM_LANE32(T, TY)                                                             \
  template <>                                                                            \
  struct LaneType<T> {                                                                   \
    static constexpr Ty ty = TY;                                                         \
    static T load(const u32* p, int l) { return bits<T>(p[l]); }                         \
    static void store(u32* p, int l, T x) { p[l] = bits<u32>(x); }                       \
  };
#define AMDSIM_LANE64(T, TY)                                                             \
  template <>                                                                            \
  struct LaneType<T> {                                                                   \
    static constexpr Ty ty = TY;                                                         \
    static T load(const u32* p, int l) { return bits<T>(u64(p[l]) | u64(p[kLanes + l]) << 32); } \
    static void store(u32* p, int l, T x) {                                              \
      u64 v = bits<u64>(x);                                                              \
      p[l] = u32(v), p[kLanes + l] = u32(v >> 32);                                       \
    }                                                                                    \
  };
#define AMDSIM_LANE16(T, TY)                                                             \
  template <>                                                                            \
  struct LaneType<T> {                                                                   \
    static constexpr Ty ty = TY;                                                         \
    static T load(const u32* p, int l) { return bits<T>(u16(p[l])); }                    \
    static void store(u32* p, int l, T x) { p[l] = bits<u16>(x); }                       \
  };
AMDSIM_LANE32(u32, Ty::B32)
AMDSIM_LANE32(i32, Ty::I32)
AMDSIM_LANE32(f32, Ty::F32)
AMDSIM_LANE64(u64, Ty::B64)
AMDSIM_LANE64(i64, Ty::I64)
AMDSIM_LANE64(f64, Ty::F64)
AMDSIM_LANE16(u16, Ty::B16)
AMDSIM_LANE16(i16, Ty::B16)
AMDSIM_LANE16(f16, Ty::F16)
AMDSIM_LANE16(bf16, Ty::BF16)
#undef AMDSIM_LANE32
#undef AMDSIM_LANE64
#undef AMDSIM_LANE16

// Two halves of a packed 16-bit operand and of a packed f32 pair: the core has applied op_sel, op_sel_hi,
// neg_lo and neg_hi, so the lambda sees plain low and high parts.
struct pk16 {
  u16 lo, hi;
};
struct pkf16 {
  f16 lo, hi;
};
struct pkf32 {
  f32 lo, hi;
};
template <>
struct LaneType<pk16> {
  static constexpr Ty ty = Ty::PkB16;
  static pk16 load(const u32* p, int l) { return {u16(p[l]), u16(p[l] >> 16)}; }
  static void store(u32* p, int l, pk16 x) { p[l] = u32(x.lo) | u32(x.hi) << 16; }
};
template <>
struct LaneType<pkf16> {
  static constexpr Ty ty = Ty::PkF16;
  static pkf16 load(const u32* p, int l) { return {{u16(p[l])}, {u16(p[l] >> 16)}}; }
  static void store(u32* p, int l, pkf16 x) { p[l] = u32(x.lo.bits) | u32(x.hi.bits) << 16; }
};
template <>
struct LaneType<pkf32> {
  static constexpr Ty ty = Ty::PkF32;
  static pkf32 load(const u32* p, int l) { return {bits<f32>(p[l]), bits<f32>(p[kLanes + l])}; }
  static void store(u32* p, int l, pkf32 x) { p[l] = bits<u32>(x.lo), p[kLanes + l] = bits<u32>(x.hi); }
};

// Lane masks as one 0 or 1 per lane, and back.
WARPWAVE_INLINE void spread_mask(u64 mask, u32* flag) {
  const u32 low = u32(mask), high = u32(mask >> 32);
  for (int l = 0; l < 32; ++l) flag[l] = low >> l & 1, flag[l + 32] = high >> l & 1;
}
WARPWAVE_INLINE u64 gather_mask(const u32* flag) {
  u32 low = 0, high = 0;
  for (int l = 0; l < 32; ++l) low |= flag[l] << l, high |= flag[l + 32] << l;
  return low | u64(high) << 32;
}

namespace vop_detail {

template <class F>
struct Signature;
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> {
  using Result = R;
  static constexpr int arity = sizeof...(A);
  static constexpr Ty args[4] = {LaneType<std::remove_cvref_t<A>>::ty...};
};

template <auto F, class R, class C, class... A>
WARPWAVE_INLINE void run(LaneArgs& io, R (C::*)(A...) const) {
  u32* d = io.d;
  const u32* const p[3] = {io.a, io.b, io.c};
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      LaneType<R>::store(d, l, F(LaneType<std::remove_cvref_t<A>>::load(p[I], l)...));
    }(std::index_sequence_for<A...>{});
  }
}

template <auto F>
WARPWAVE_MULTIVERSION_GCC void lanes(LaneArgs& io) {
  run<F>(io, &decltype(F)::operator());
}

template <auto F, class C, class... A>
WARPWAVE_INLINE u64 compare(const LaneArgs& io, bool (C::*)(A...) const) {
  const u32* const p[3] = {io.a, io.b, io.c};
  alignas(64) u32 flag[kLanes];
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      flag[l] = F(LaneType<std::remove_cvref_t<A>>::load(p[I], l)...);
    }(std::index_sequence_for<A...>{});
  }
  return gather_mask(flag);
}

template <auto F>
WARPWAVE_MULTIVERSION_GCC void compares(LaneArgs& io) {
  io.mask_out = compare<F>(io, &decltype(F)::operator());
}

}  // namespace vop_detail

// An element-wise VALU instruction from a lambda on one lane.
template <auto F>
Desc vop(const char* name, u32 flags = 0) {
  using S = vop_detail::Signature<decltype(&decltype(F)::operator())>;
  Desc d;
  d.name = name;
  d.exec = exec_valu;
  d.body = reinterpret_cast<const void*>(static_cast<LaneFn>(&vop_detail::lanes<F>));
  d.dst = LaneType<typename S::Result>::ty;
  d.n_src = S::arity;
  for (int i = 0; i < S::arity; ++i) d.src[i] = S::args[i];
  d.flags = kValu | flags;
  return d;
}

// An instruction whose third source is its own destination (v_fmac_f32): the lambda takes it last.
template <auto F>
Desc vop_acc(const char* name, u32 flags = 0) {
  Desc d = vop<F>(name, flags | kReadsDst);
  d.n_src -= 1;  // not written in the assembly
  return d;
}

// A comparison: the lambda returns bool; v_cmpx also writes EXEC.
template <auto F>
Desc vcmp(const char* name, u32 flags = 0) {
  using S = vop_detail::Signature<decltype(&decltype(F)::operator())>;
  Desc d;
  d.name = name;
  d.exec = exec_valu;
  d.body = reinterpret_cast<const void*>(static_cast<LaneFn>(&vop_detail::compares<F>));
  d.sdst = Ty::Mask;
  d.n_src = S::arity;
  for (int i = 0; i < S::arity; ++i) d.src[i] = S::args[i];
  d.flags = kValu | kVcmp | flags;
  return d;
}

// Anything element-wise that needs the masks, MODE or modifiers: write the loop over io yourself.
inline Desc vop_raw(const char* name, LaneFn body, Ty dst, std::initializer_list<Ty> src, u32 flags = 0) {
  Desc d;
  d.name = name;
  d.exec = exec_valu;
  d.body = reinterpret_cast<const void*>(body);
  d.dst = dst;
  for (Ty t : src) d.src[d.n_src++] = t;
  d.flags = kValu | flags;
  return d;
}

}  // namespace amdsim
