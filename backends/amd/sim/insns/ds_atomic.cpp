// LDS atomics, with and without return.
#include <deque>
#include <string>

#include "atomic_ops.hpp"
#include "ds.hpp"

namespace amdsim {
namespace {

using namespace atomic_ops;

const char* keep(std::string name) {  // Desc holds a pointer: the names live as long as the registry
  static std::deque<std::string> names;
  return names.emplace_back(std::move(name)).c_str();
}

LdsAccess begin(Wave& w, const Inst& in, int address, u32 bytes, u64 seq) {
  LdsAccess a;
  ds_addresses(w, in.src[address], in.mod.offset, a);
  a.bytes = a.align = bytes, a.use = Use::Atomic, a.seq = seq;
  count_lds(w, in, a);
  a.lanes = check_lds(w, in, a);
  return a;
}

u64 lane_value(const Wave& w, const Operand& op, int lane) {
  u64 value = w.v[op.reg][lane];
  if (op.dwords == 2) value |= u64(w.v[op.reg + 1][lane]) << 32;
  return value;
}

bool lane_undefined(const Wave& w, const Operand& op, int lane) {
  u64 any = 0;
  for (int d = 0; d < op.dwords; ++d) any |= w.vundef[op.reg + d].any();
  return any >> lane & 1;
}

bool lds_undefined(const Workgroup& g, u32 at, u32 bytes) {
  return std::any_of(g.lds_undef.begin() + at, g.lds_undef.begin() + at + bytes, [](u8 u) { return u != 0; });
}

void put_result(LoadResult& r, int lane, u64 old, bool undefined, int dwords) {
  for (int d = 0; d < dwords; ++d) {
    r.rows[d][lane] = u32(old >> 32 * d);
    for (u64& b : r.undefined[d].b) b |= u64(undefined) << lane;
  }
}

// Lanes act one after another in lane order.
template <class U, bool CompareSwap>
void ds_atomic(Wave& w, const Inst& in) {
  constexpr u32 bytes = sizeof(U);
  using F = U (*)(U, U);
  const F f = reinterpret_cast<F>(const_cast<void*>(in.body));
  const u64 seq = issue_lds(w, in);
  LdsAccess a = begin(w, in, 0, bytes, seq);
  Workgroup& g = *w.group;
  LoadResult result;
  for (u64 m = a.lanes; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    U old;
    std::memcpy(&old, g.lds.data() + a.address[l], bytes);
    const bool was_undefined = lds_undefined(g, a.address[l], bytes);
    const U first = static_cast<U>(lane_value(w, in.src[1], l));
    // cmpswap: the first data operand is compared, the second stored
    const U next = CompareSwap ? (old == first ? static_cast<U>(lane_value(w, in.src[2], l)) : old) : f(old, first);
    const bool undefined = lane_undefined(w, in.src[1], l) || (was_undefined && !(in.desc->aux & 1));
    std::memcpy(g.lds.data() + a.address[l], &next, bytes);
    std::memset(g.lds_undef.data() + a.address[l], undefined, bytes);
    put_result(result, l, u64(old), was_undefined, bytes / 4);
  }
  result.lanes = a.lanes;
  if (in.dst.kind == Kind::Vgpr) land_load(w, in, in.dst.reg, bytes / 4, result, Path::Lds, seq);
}

template <class U>
void add(Registry& r, const char* op, const char* type, U (*f)(U, U), bool compare_swap = false, bool replaces = false) {
  const Ty ty = sizeof(U) == 8 ? Ty::B64 : Ty::B32;
  for (bool rtn : {false, true}) {
    Desc d;
    d.name = keep(std::string("ds_") + op + (rtn ? "_rtn_" : "_") + type);
    d.exec = compare_swap ? &ds_atomic<U, true> : &ds_atomic<U, false>;
    d.body = reinterpret_cast<const void*>(f);
    d.dst = rtn ? ty : Ty::None;
    d.src[0] = Ty::B32, d.src[1] = ty, d.src[2] = ty, d.n_src = compare_swap ? 3 : 2;
    d.flags = kDs | kAtomic | (rtn ? u32(kLoad) : 0);
    d.aux = replaces;
    if (std::string(op) == "wrxchg" && !rtn) continue;
    r.add(d);
  }
}

}  // namespace

void register_ds_atomics(Registry& r) {
  add<u32>(r, "add", "u32", atomic_ops::add<u32>);
  add<u32>(r, "sub", "u32", sub<u32>);
  add<u32>(r, "rsub", "u32", rsub<u32>);
  add<u32>(r, "inc", "u32", inc<u32>);
  add<u32>(r, "dec", "u32", dec<u32>);
  add<u32>(r, "min", "u32", atomic_ops::min<u32>);
  add<u32>(r, "max", "u32", atomic_ops::max<u32>);
  add<u32>(r, "min", "i32", apply<i32, u32, atomic_ops::min<i32>>);
  add<u32>(r, "max", "i32", apply<i32, u32, atomic_ops::max<i32>>);
  add<u32>(r, "and", "b32", bit_and<u32>);
  add<u32>(r, "or", "b32", bit_or<u32>);
  add<u32>(r, "xor", "b32", bit_xor<u32>);
  add<u32>(r, "wrxchg", "b32", swap<u32>, false, true);
  add<u32>(r, "cmpst", "b32", swap<u32>, true);
  add<u32>(r, "add", "f32", apply<f32, u32, atomic_ops::add<f32>>);
  add<u32>(r, "min", "f32", apply<f32, u32, atomic_ops::fmin<f32>>);
  add<u32>(r, "max", "f32", apply<f32, u32, atomic_ops::fmax<f32>>);
  add<u32>(r, "pk_add", "f16", pk_add_f16);
  add<u32>(r, "pk_add", "bf16", pk_add_bf16);
  add<u64>(r, "add", "u64", atomic_ops::add<u64>);
  add<u64>(r, "sub", "u64", sub<u64>);
  add<u64>(r, "min", "u64", atomic_ops::min<u64>);
  add<u64>(r, "max", "u64", atomic_ops::max<u64>);
  add<u64>(r, "min", "i64", apply<i64, u64, atomic_ops::min<i64>>);
  add<u64>(r, "max", "i64", apply<i64, u64, atomic_ops::max<i64>>);
  add<u64>(r, "and", "b64", bit_and<u64>);
  add<u64>(r, "or", "b64", bit_or<u64>);
  add<u64>(r, "xor", "b64", bit_xor<u64>);
  add<u64>(r, "wrxchg", "b64", swap<u64>, false, true);
  add<u64>(r, "cmpst", "b64", swap<u64>, true);
  add<u64>(r, "add", "f64", apply<f64, u64, atomic_ops::add<f64>>);
  add<u64>(r, "min", "f64", apply<f64, u64, atomic_ops::fmin<f64>>);
  add<u64>(r, "max", "f64", apply<f64, u64, atomic_ops::fmax<f64>>);
}

}  // namespace amdsim
