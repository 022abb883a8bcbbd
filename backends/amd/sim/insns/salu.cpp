// Scalar ALU: two-source, one-source and comparison instructions (CDNA3/4 ISA 13.1-13.4: SOP2, SOP1, SOPC).
#include <algorithm>
#include <limits>

#include "sop.hpp"

namespace amdsim {
namespace {

using namespace sop;

template <class T>
T nonzero(Wave& w, T x) {
  w.scc = x != 0;
  return x;
}

bool overflow(i64 wide) { return wide != i64(i32(wide)); }

i32 add_i32(Wave& w, i32 a, i32 b) {
  w.scc = overflow(i64(a) + b);
  return i32(u32(a) + u32(b));
}

i32 sub_i32(Wave& w, i32 a, i32 b) {
  w.scc = overflow(i64(a) - b);
  return i32(u32(a) - u32(b));
}

u32 add_carry(Wave& w, u32 a, u32 b, bool carry) {
  const u64 sum = u64(a) + b + carry;
  w.scc = sum >> 32;
  return u32(sum);
}

u32 sub_borrow(Wave& w, u32 a, u32 b, bool borrow) {
  w.scc = u64(b) + borrow > a;
  return a - b - borrow;
}

template <int N>
u32 lshl_add(Wave& w, u32 a, u32 b) {
  const u64 sum = (u64(a) << N) + b;
  w.scc = sum >> 32;
  return u32(sum);
}

// Offset in bits 4:0 (5:0), width in bits 22:16 of the second source.
template <class T>
T bfe(Wave& w, T a, T control) {
  constexpr int size = sizeof(T) * 8;
  const int offset = int(control) & (size - 1), width = std::min(int(control >> 16 & 0x7f), size);
  using U = std::make_unsigned_t<T>;
  if (width == 0) return nonzero<T>(w, 0);
  const U field = U(a >> offset);  // arithmetic for signed T: a field may reach beyond the sign bit
  const int drop = size - width;
  return nonzero<T>(w, T(T(field << drop) >> drop));
}

template <class T>
T bfm(Wave&, T a, T b) {
  constexpr int mask = sizeof(T) * 8 - 1;
  return ((T(1) << (a & mask)) - 1) << (b & mask);
}

template <class T, int N, bool Left>
T shift(Wave& w, T a, T b) {
  return nonzero<T>(w, Left ? T(std::make_unsigned_t<T>(a) << (b & N)) : T(a >> (b & N)));
}

template <class T, class Wide>
T mul_hi(Wave&, T a, T b) {
  return T(Wide(a) * b >> 32);
}

u32 count_leading(i64 x, int size) {  // S_FLBIT_I32: leading bits equal to the sign, -1 if all are
  const bool negative = x < 0;
  for (int i = 0; i < size; ++i)
    if ((x >> (size - 1 - i) & 1) != (negative ? 1 : 0)) return u32(i);
  return ~0u;
}

template <class T>
u32 flbit(Wave&, T x) {
  return x ? u32(std::countl_zero(x)) : ~0u;
}
template <class T>
u32 ff1(Wave&, T x) {
  return x ? u32(std::countr_zero(x)) : ~0u;
}

template <class T>
T reverse(Wave&, T x) {
  T out = 0;
  for (unsigned i = 0; i < sizeof(T) * 8; ++i) out = T(out << 1) | (x >> i & 1);
  return out;
}

template <class T>
T whole_quads(Wave& w, T x) {
  T any = x | x >> 1 | x >> 2 | x >> 3;
  any &= T(0x1111111111111111ull);
  return nonzero<T>(w, T(any * 15));
}

template <class T>
T quad_mask(Wave& w, T x) {
  T mask = 0;
  for (unsigned quad = 0; quad < sizeof(T) * 2; ++quad) mask |= T((x >> (4 * quad) & 15) != 0) << quad;
  return nonzero<T>(w, mask);
}

u64 replicated(Wave&, u32 x) {
  u64 out = 0;
  for (int i = 0; i < 32; ++i) out |= (x >> i & 1 ? 3ull : 0) << (2 * i);
  return out;
}

// dst = EXEC, then EXEC = op(src, EXEC): the divergence instructions.
template <auto F, class Undef>
void saveexec(Wave& w, const Inst& in) {
  const u64 s = w.s64(in.src[0]), exec = w.exec(), undefined = Undef::bits(s, exec, w.s_undef(in.src[0]), 0);
  const u64 next = F(s, exec);
  if (undefined) w.violate(Check::Uninit, "EXEC is set from an undefined value", undefined);
  write(w, in.dst, exec, 0, 2);
  w.set_exec(next);
  w.scc = next != 0, w.scc_undef = false;
}

// EXEC = op(src, EXEC) and dst receives the same.
template <auto F>
void wrexec(Wave& w, const Inst& in) {
  const u64 next = F(w.s64(in.src[0]), w.exec());
  if (w.s_undef(in.src[0])) w.violate(Check::Uninit, "EXEC is set from an undefined value", w.s_undef(in.src[0]));
  write(w, in.dst, next, 0, 2);
  w.set_exec(next);
  w.scc = next != 0, w.scc_undef = false;
}

template <class T>
void cselect(Wave& w, const Inst& in) {
  const Operand& chosen = in.src[w.scc ? 0 : 1];
  write(w, in.dst, u64(read<T>(w, chosen)), w.scc_undef ? ~0ull : w.s_undef(chosen), sizeof(T) / 4);
}

template <class T>
void cmov(Wave& w, const Inst& in) {
  if (w.scc_undef) w.violate(Check::Uninit, "the condition SCC is undefined");
  if (w.scc) write(w, in.dst, u64(read<T>(w, in.src[0])), w.s_undef(in.src[0]), sizeof(T) / 4);
}

template <bool Set, class T>
void bitset(Wave& w, const Inst& in) {
  constexpr int mask = sizeof(T) * 8 - 1;
  const T bit = T(1) << (w.s32(in.src[0]) & mask);
  const T old = read<T>(w, in.dst);
  const u64 undefined = w.s_undef(in.src[0]) ? ~0ull : w.s_undef(in.dst) & ~u64(bit);
  write(w, in.dst, u64(Set ? old | bit : old & ~bit), undefined, sizeof(T) / 4);
}

template <bool Set, class T>
void bitcmp(Wave& w, const Inst& in) {
  const int bit = int(w.s32(in.src[1])) & (sizeof(T) * 8 - 1);
  w.scc = (read<T>(w, in.src[0]) >> bit & 1) == Set;
  w.scc_undef = w.s_undef(in.src[1]) || (w.s_undef(in.src[0]) >> bit & 1);
}

template <class T>
void register_width(Registry& r) {
  constexpr bool wide = sizeof(T) == 8;
  auto name = [](const char* narrow, const char* full) { return wide ? full : narrow; };
  r.add(op2<T, [](Wave& w, T a, T b) { return nonzero<T>(w, a & b); }, And<false>, kSet>(name("s_and_b32", "s_and_b64")));
  r.add(op2<T, [](Wave& w, T a, T b) { return nonzero<T>(w, a | b); }, Or<false>, kSet>(name("s_or_b32", "s_or_b64")));
  r.add(op2<T, [](Wave& w, T a, T b) { return nonzero<T>(w, a ^ b); }, Either, kSet>(name("s_xor_b32", "s_xor_b64")));
  r.add(op2<T, [](Wave& w, T a, T b) { return nonzero<T>(w, a & ~b); }, And<true>, kSet>(name("s_andn2_b32", "s_andn2_b64")));
  r.add(op2<T, [](Wave& w, T a, T b) { return nonzero<T>(w, a | ~b); }, Or<true>, kSet>(name("s_orn2_b32", "s_orn2_b64")));
  r.add(op2<T, [](Wave& w, T a, T b) { return nonzero<T>(w, ~(a & b)); }, And<false>, kSet>(name("s_nand_b32", "s_nand_b64")));
  r.add(op2<T, [](Wave& w, T a, T b) { return nonzero<T>(w, ~(a | b)); }, Or<false>, kSet>(name("s_nor_b32", "s_nor_b64")));
  r.add(op2<T, [](Wave& w, T a, T b) { return nonzero<T>(w, ~(a ^ b)); }, Either, kSet>(name("s_xnor_b32", "s_xnor_b64")));
  r.add(op2<T, shift<T, sizeof(T) * 8 - 1, true>, ShiftLeft, kSet>(name("s_lshl_b32", "s_lshl_b64"), Ty::B32));
  r.add(op2<T, shift<T, sizeof(T) * 8 - 1, false>, Smear, kSet>(name("s_lshr_b32", "s_lshr_b64"), Ty::B32));
  using S = std::make_signed_t<T>;
  r.add(op2<S, shift<S, sizeof(T) * 8 - 1, false>, Smear, kSet>(name("s_ashr_i32", "s_ashr_i64"), Ty::B32));
  r.add(op2<T, bfe<T>, Smear, kSet>(name("s_bfe_u32", "s_bfe_u64"), Ty::B32));
  r.add(op2<S, bfe<S>, Smear, kSet>(name("s_bfe_i32", "s_bfe_i64"), Ty::B32));
  Desc mask = op2<T, bfm<T>>(name("s_bfm_b32", "s_bfm_b64"), Ty::B32);
  mask.src[0] = Ty::B32;
  r.add(mask);
  r.add(make(name("s_cselect_b32", "s_cselect_b64"), cselect<T>, ty<T>(), {ty<T>(), ty<T>()}));
  r.add(make(name("s_cmov_b32", "s_cmov_b64"), cmov<T>, ty<T>(), {ty<T>()}, kReadsDst));
  r.add(op1<T, [](Wave&, T a) { return a; }, Either>(name("s_mov_b32", "s_mov_b64")));
  r.add(op1<T, [](Wave& w, T a) { return nonzero<T>(w, ~a); }, Either, kSet>(name("s_not_b32", "s_not_b64")));
  r.add(op1<T, whole_quads<T>, Smear, kSet>(name("s_wqm_b32", "s_wqm_b64")));
  r.add(op1<T, quad_mask<T>, Smear, kSet>(name("s_quadmask_b32", "s_quadmask_b64")));
  r.add(op1<T, reverse<T>>(name("s_brev_b32", "s_brev_b64")));
  r.add(op1<T, [](Wave& w, T a) { return nonzero<u32>(w, u32(std::popcount(a))); }, Smear, kSet>(name("s_bcnt1_i32_b32", "s_bcnt1_i32_b64")));
  r.add(op1<T, [](Wave& w, T a) { return nonzero<u32>(w, u32(std::popcount(T(~a)))); }, Smear, kSet>(name("s_bcnt0_i32_b32", "s_bcnt0_i32_b64")));
  r.add(op1<T, ff1<T>>(name("s_ff1_i32_b32", "s_ff1_i32_b64")));
  r.add(op1<T, [](Wave& w, T a) { return ff1<T>(w, ~a); }>(name("s_ff0_i32_b32", "s_ff0_i32_b64")));
  r.add(op1<T, flbit<T>>(name("s_flbit_i32_b32", "s_flbit_i32_b64")));
  r.add(op1<T, [](Wave&, T a) { return count_leading(S(a), sizeof(T) * 8); }>(name("s_flbit_i32", "s_flbit_i32_i64")));
  r.add(make(name("s_bitset0_b32", "s_bitset0_b64"), bitset<false, T>, ty<T>(), {Ty::B32}, kReadsDst));
  r.add(make(name("s_bitset1_b32", "s_bitset1_b64"), bitset<true, T>, ty<T>(), {Ty::B32}, kReadsDst));
  r.add(make(name("s_bitcmp0_b32", "s_bitcmp0_b64"), bitcmp<false, T>, Ty::None, {ty<T>(), Ty::B32}));
  r.add(make(name("s_bitcmp1_b32", "s_bitcmp1_b64"), bitcmp<true, T>, Ty::None, {ty<T>(), Ty::B32}));
}

void register_arithmetic(Registry& r) {
  r.add(op2<u32, [](Wave& w, u32 a, u32 b) { return add_carry(w, a, b, false); }, Smear, kSet>("s_add_u32"));
  r.add(op2<u32, [](Wave& w, u32 a, u32 b) { return add_carry(w, a, b, w.scc); }, Smear, kSet | kRead>("s_addc_u32"));
  r.add(op2<u32, [](Wave& w, u32 a, u32 b) { return sub_borrow(w, a, b, false); }, Smear, kSet>("s_sub_u32"));
  r.add(op2<u32, [](Wave& w, u32 a, u32 b) { return sub_borrow(w, a, b, w.scc); }, Smear, kSet | kRead>("s_subb_u32"));
  r.add(op2<i32, add_i32, Smear, kSet>("s_add_i32"));
  r.add(op2<i32, sub_i32, Smear, kSet>("s_sub_i32"));
  r.add(op2<i32, [](Wave& w, i32 a, i32 b) { w.scc = a < b; return a < b ? a : b; }, Smear, kSet>("s_min_i32"));
  r.add(op2<u32, [](Wave& w, u32 a, u32 b) { w.scc = a < b; return a < b ? a : b; }, Smear, kSet>("s_min_u32"));
  r.add(op2<i32, [](Wave& w, i32 a, i32 b) { w.scc = b < a; return b < a ? a : b; }, Smear, kSet>("s_max_i32"));
  r.add(op2<u32, [](Wave& w, u32 a, u32 b) { w.scc = b < a; return b < a ? a : b; }, Smear, kSet>("s_max_u32"));
  r.add(op2<u32, [](Wave&, u32 a, u32 b) { return a * b; }>("s_mul_i32"));
  r.add(op2<u32, mul_hi<u32, u64>>("s_mul_hi_u32"));
  r.add(op2<i32, mul_hi<i32, i64>>("s_mul_hi_i32"));
  r.add(op2<i32, [](Wave& w, i32 a, i32 b) { return nonzero<u32>(w, b < a ? u32(a) - u32(b) : u32(b) - u32(a)); }, Smear, kSet>("s_absdiff_i32"));
  r.add(op2<u32, lshl_add<1>, Smear, kSet>("s_lshl1_add_u32"));
  r.add(op2<u32, lshl_add<2>, Smear, kSet>("s_lshl2_add_u32"));
  r.add(op2<u32, lshl_add<3>, Smear, kSet>("s_lshl3_add_u32"));
  r.add(op2<u32, lshl_add<4>, Smear, kSet>("s_lshl4_add_u32"));
  r.add(op2<u32, [](Wave&, u32 a, u32 b) { return (a & 0xffff) | b << 16; }>("s_pack_ll_b32_b16"));
  r.add(op2<u32, [](Wave&, u32 a, u32 b) { return (a & 0xffff) | (b & 0xffff0000u); }>("s_pack_lh_b32_b16"));
  r.add(op2<u32, [](Wave&, u32 a, u32 b) { return a / 65536 | (b & 0xffff0000u); }>("s_pack_hh_b32_b16"));
  r.add(op1<i32, [](Wave& w, i32 a) { return nonzero<u32>(w, a < 0 ? 0u - u32(a) : u32(a)); }, Smear, kSet>("s_abs_i32"));
  r.add(op1<u32, [](Wave&, u32 a) { return u32(i32(i8(a))); }>("s_sext_i32_i8"));
  r.add(op1<u32, [](Wave&, u32 a) { return u32(i32(i16(a))); }>("s_sext_i32_i16"));
}

void register_saveexec(Registry& r) {
  auto add = [&](const char* name, ExecFn exec) { r.add(make(name, exec, Ty::B64, {Ty::B64}, kWritesExec)); };
  add("s_and_saveexec_b64", saveexec<[](u64 s, u64 e) { return s & e; }, And<false>>);
  add("s_or_saveexec_b64", saveexec<[](u64 s, u64 e) { return s | e; }, Or<false>>);
  add("s_xor_saveexec_b64", saveexec<[](u64 s, u64 e) { return s ^ e; }, Either>);
  add("s_andn2_saveexec_b64", saveexec<[](u64 s, u64 e) { return s & ~e; }, And<true>>);
  add("s_orn2_saveexec_b64", saveexec<[](u64 s, u64 e) { return s | ~e; }, Or<true>>);
  add("s_nand_saveexec_b64", saveexec<[](u64 s, u64 e) { return ~(s & e); }, And<false>>);
  add("s_nor_saveexec_b64", saveexec<[](u64 s, u64 e) { return ~(s | e); }, Or<false>>);
  add("s_xnor_saveexec_b64", saveexec<[](u64 s, u64 e) { return ~(s ^ e); }, Either>);
  add("s_andn1_saveexec_b64", saveexec<[](u64 s, u64 e) { return ~s & e; }, Either>);
  add("s_orn1_saveexec_b64", saveexec<[](u64 s, u64 e) { return ~s | e; }, Either>);
  add("s_andn1_wrexec_b64", wrexec<[](u64 s, u64 e) { return ~s & e; }>);
  add("s_andn2_wrexec_b64", wrexec<[](u64 s, u64 e) { return s & ~e; }>);
}

void register_compares(Registry& r) {
  r.add(compare<u32, [](u32 a, u32 b) { return a == b; }>("s_cmp_eq_u32"));
  r.add(compare<u32, [](u32 a, u32 b) { return a != b; }>("s_cmp_lg_u32"));
  r.add(compare<u32, [](u32 a, u32 b) { return b < a; }>("s_cmp_gt_u32"));
  r.add(compare<u32, [](u32 a, u32 b) { return a >= b; }>("s_cmp_ge_u32"));
  r.add(compare<u32, [](u32 a, u32 b) { return a < b; }>("s_cmp_lt_u32"));
  r.add(compare<u32, [](u32 a, u32 b) { return a <= b; }>("s_cmp_le_u32"));
  r.add(compare<i32, [](i32 a, i32 b) { return a == b; }>("s_cmp_eq_i32"));
  r.add(compare<i32, [](i32 a, i32 b) { return a != b; }>("s_cmp_lg_i32"));
  r.add(compare<i32, [](i32 a, i32 b) { return b < a; }>("s_cmp_gt_i32"));
  r.add(compare<i32, [](i32 a, i32 b) { return a >= b; }>("s_cmp_ge_i32"));
  r.add(compare<i32, [](i32 a, i32 b) { return a < b; }>("s_cmp_lt_i32"));
  r.add(compare<i32, [](i32 a, i32 b) { return a <= b; }>("s_cmp_le_i32"));
  r.add(compare<u64, [](u64 a, u64 b) { return a == b; }>("s_cmp_eq_u64"));
  r.add(compare<u64, [](u64 a, u64 b) { return a != b; }>("s_cmp_lg_u64"));
}

}  // namespace

void register_salu(Registry& r) {
  r.add(op1<u32, replicated>("s_bitreplicate_b64_b32"));
  register_width<u32>(r);
  register_width<u64>(r);
  register_arithmetic(r);
  register_saveexec(r);
  register_compares(r);
}

}  // namespace amdsim
