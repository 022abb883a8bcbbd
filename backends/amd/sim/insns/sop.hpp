// How a scalar ALU instruction is written: a lambda on its sources that returns the result and may set w.scc.
#pragma once

#include <string>

#include "../core/registry.hpp"
#include "../core/wave.hpp"

namespace amdsim::sop {

template <class T>
T read(const Wave& w, const Operand& op) {
  if constexpr (sizeof(T) == 8) return static_cast<T>(w.s64(op));
  else return static_cast<T>(w.s32(op));
}

// Stores a scalar result with its undefined bits. EXEC decides which lanes act, so it must be defined.
inline void write(Wave& w, const Operand& dst, u64 value, u64 undefined, int dwords) {
  const bool to_exec = dst.reg >= sreg::kExec && dst.reg < sreg::kCount;
  if (to_exec && undefined) w.violate(Check::Uninit, "EXEC is set from an undefined value", undefined);
  w.sgpr[dst.reg] = u32(value), w.sundef[dst.reg] = u32(undefined);
  if (dwords == 2) w.sgpr[dst.reg + 1] = u32(value >> 32), w.sundef[dst.reg + 1] = u32(undefined >> 32);
}

// Undefined bits of a result. Arithmetic smears; bitwise operations are exact: 0 & x and 1 | x are defined.
struct Smear {
  static u64 bits(u64, u64, u64 ua, u64 ub) { return ua | ub ? ~0ull : 0; }
};
struct Either {  // xor, not, move: bit by bit
  static u64 bits(u64, u64, u64 ua, u64 ub) { return ua | ub; }
};
template <bool NotB>
struct And {
  static u64 bits(u64 a, u64 b, u64 ua, u64 ub) {
    if (NotB) b = ~b;
    return (ua | ub) & ~(~a & ~ua) & ~(~b & ~ub);
  }
};
template <bool NotB>
struct Or {
  static u64 bits(u64 a, u64 b, u64 ua, u64 ub) {
    if (NotB) b = ~b;
    return (ua | ub) & ~(a & ~ua) & ~(b & ~ub);
  }
};
struct ShiftLeft {  // exact when the amount is defined
  static u64 bits(u64, u64 b, u64 ua, u64 ub) { return ub ? ~0ull : ua << (b & 63); }
};

enum Scc : int { kKeep = 0, kSet = 1, kRead = 2 };

template <class T, auto F, class Undef, int Use>
void run2(Wave& w, const Inst& in) {
  const T a = read<T>(w, in.src[0]), b = read<T>(w, in.src[1]);
  u64 ua = w.s_undef(in.src[0]), ub = w.s_undef(in.src[1]);
  if (Use & kRead && w.scc_undef) ua = ~0ull;
  const auto result = F(w, a, b);
  const u64 undefined = Undef::bits(u64(a), u64(b), ua, ub);
  constexpr int dwords = sizeof(result) / 4;
  if (Use & kSet) w.scc_undef = (dwords == 2 ? undefined : u32(undefined)) != 0;
  write(w, in.dst, u64(result), undefined, dwords);
}

template <class T, auto F, class Undef, int Use>
void run1(Wave& w, const Inst& in) {
  const T a = read<T>(w, in.src[0]);
  const u64 ua = w.s_undef(in.src[0]);
  const auto result = F(w, a);
  const u64 undefined = Undef::bits(u64(a), 0, ua, 0);
  constexpr int dwords = sizeof(result) / 4;
  if (Use & kSet) w.scc_undef = ua != 0;
  write(w, in.dst, u64(result), undefined, dwords);
}

template <class T, auto F>
void run_compare(Wave& w, const Inst& in) {
  w.scc = F(read<T>(w, in.src[0]), read<T>(w, in.src[1]));
  w.scc_undef = (w.s_undef(in.src[0]) | w.s_undef(in.src[1])) != 0;
}

template <class T>
constexpr Ty ty() {
  return sizeof(T) == 8 ? Ty::B64 : Ty::B32;
}

inline Desc make(const char* name, ExecFn exec, Ty dst, std::initializer_list<Ty> src, u32 flags = 0) {
  Desc d;
  d.name = name, d.exec = exec, d.dst = dst, d.flags = kSalu | flags;
  for (Ty t : src) d.src[d.n_src++] = t;
  return d;
}

template <class T, auto F, class Undef = Smear, int Use = kKeep>
Desc op2(const char* name, Ty second = ty<T>()) {
  using R = decltype(F(std::declval<Wave&>(), T{}, T{}));
  return make(name, run2<T, F, Undef, Use>, ty<R>(), {ty<T>(), second});
}

template <class T, auto F, class Undef = Smear, int Use = kKeep>
Desc op1(const char* name) {
  using R = decltype(F(std::declval<Wave&>(), T{}));
  return make(name, run1<T, F, Undef, Use>, ty<R>(), {ty<T>()});
}

template <class T, auto F>
Desc compare(const char* name) {
  return make(name, run_compare<T, F>, Ty::None, {ty<T>(), ty<T>()});
}

}  // namespace amdsim::sop
