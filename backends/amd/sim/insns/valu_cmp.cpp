// v_cmp_* and v_cmpx_*: every relation on every type, and the class tests.
#include <deque>
#include <string>

#include "../arith/floats.hpp"
#include "vop_modes.hpp"

namespace amdsim {
namespace {

// Desc holds a plain pointer; the names of this family are composed.
const char* interned(std::string name) {
  static std::deque<std::string> names;
  return names.emplace_back(std::move(name)).c_str();
}

void add_both(Registry& r, Desc d, const std::string& tail) {
  d.name = interned("v_cmp_" + tail);
  r.add(d);
  d.name = interned("v_cmpx_" + tail);
  d.flags |= kVcmpx | kWritesExec;
  r.add(d);
}

// f16 comparisons are those of the exactly widened values.
f32 comparable(f16 x) { return arith::to_f32(x); }
f32 comparable(f32 x) { return x; }
f64 comparable(f64 x) { return x; }

// A relation holds when the operands' order (less, equal, greater, unordered) is one of its accepted ones.
template <class F, bool Less, bool Equal, bool Greater, bool Unordered>
Desc relation() {
  return vcmp<[](F x, F y) {
    const auto a = comparable(x), b = comparable(y);
    bool holds = false;
    if constexpr (Less) holds |= a < b;
    if constexpr (Equal) holds |= a == b;
    if constexpr (Greater) holds |= b < a;
    if constexpr (Unordered) holds |= a != a || b != b;
    return holds;
  }>("");
}

template <class F>
void float_relations(Registry& r, const std::string& type) {
  add_both(r, relation<F, false, false, false, false>(), "f_" + type);
  add_both(r, relation<F, true, false, false, false>(), "lt_" + type);
  add_both(r, relation<F, false, true, false, false>(), "eq_" + type);
  add_both(r, relation<F, true, true, false, false>(), "le_" + type);
  add_both(r, relation<F, false, false, true, false>(), "gt_" + type);
  add_both(r, relation<F, true, false, true, false>(), "lg_" + type);
  add_both(r, relation<F, false, true, true, false>(), "ge_" + type);
  add_both(r, relation<F, true, true, true, false>(), "o_" + type);
  add_both(r, relation<F, false, false, false, true>(), "u_" + type);
  add_both(r, relation<F, true, false, false, true>(), "nge_" + type);
  add_both(r, relation<F, false, true, false, true>(), "nlg_" + type);
  add_both(r, relation<F, true, true, false, true>(), "ngt_" + type);
  add_both(r, relation<F, false, false, true, true>(), "nle_" + type);
  add_both(r, relation<F, true, false, true, true>(), "neq_" + type);
  add_both(r, relation<F, false, true, true, true>(), "nlt_" + type);
  add_both(r, relation<F, true, true, true, true>(), "tru_" + type);
}

template <class I>
void integer_relations(Registry& r, const std::string& type) {
  add_both(r, vcmp<[](I, I) { return false; }>(""), "f_" + type);
  add_both(r, vcmp<[](I a, I b) { return a < b; }>(""), "lt_" + type);
  add_both(r, vcmp<[](I a, I b) { return a == b; }>(""), "eq_" + type);
  add_both(r, vcmp<[](I a, I b) { return a <= b; }>(""), "le_" + type);
  add_both(r, vcmp<[](I a, I b) { return (a > b); }>(""), "gt_" + type);
  add_both(r, vcmp<[](I a, I b) { return a != b; }>(""), "ne_" + type);
  add_both(r, vcmp<[](I a, I b) { return (a >= b); }>(""), "ge_" + type);
  add_both(r, vcmp<[](I, I) { return true; }>(""), "t_" + type);
}

// V_CMP_CLASS: bits of the mask are sNaN, qNaN, -inf, -normal, -subnormal, -0, +0, +subnormal, +normal, +inf.
template <const arith::FloatFormat& Format, class Word>
WARPWAVE_INLINE bool in_class(Word x, u32 mask) {
  constexpr Word infinity = Word(Format.infinity()), hidden = Word(Format.hidden_bit());
  constexpr Word magnitudes = Word(Format.magnitude_mask()), sign = Word(Format.sign_bit());
  const Word magnitude = x & magnitudes;
  const u32 size = u32(magnitude != 0) + u32(magnitude >= hidden) + u32(magnitude >= infinity);  // zero to infinity
  const u32 of_number = (x & sign) != 0 ? 5 - size : 6 + size;
  const u32 of_nan = (magnitude & (hidden >> 1)) != 0 ? 1 : 0;
  return mask >> (magnitude > infinity ? of_nan : of_number) & 1;
}

}  // namespace

void register_valu_cmp(Registry& r) {
  float_relations<f16>(r, "f16");
  float_relations<f32>(r, "f32");
  float_relations<f64>(r, "f64");
  integer_relations<i16>(r, "i16");
  integer_relations<u16>(r, "u16");
  integer_relations<i32>(r, "i32");
  integer_relations<u32>(r, "u32");
  integer_relations<i64>(r, "i64");
  integer_relations<u64>(r, "u64");
  // Raw bits: MODE.denorm does not turn a subnormal into another class.
  add_both(r, vcmp<[](u16 x, u32 mask) { return (in_class<arith::kF16, u32>(x, mask)); }>(""), "class_f16");
  add_both(r, vcmp<[](u32 x, u32 mask) { return (in_class<arith::kF32, u32>(x, mask)); }>(""), "class_f32");
  add_both(r, vcmp<[](u64 x, u32 mask) { return (in_class<arith::kF64, u64>(x, mask)); }>(""), "class_f64");
}

}  // namespace amdsim
