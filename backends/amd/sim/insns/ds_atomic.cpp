// LDS atomics, with and without return.
#include <deque>
#include <string>
#include <type_traits>

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

template <class U, int Data>
U updated(const Wave& w, const Inst& in, int lane, U old) {
  const U first = static_cast<U>(lane_value(w, in.src[1], lane));
  if constexpr (Data == 2) {
    const auto f = reinterpret_cast<U (*)(U, U, U)>(const_cast<void*>(in.body));
    return f(old, first, static_cast<U>(lane_value(w, in.src[2], lane)));
  } else {
    return reinterpret_cast<U (*)(U, U)>(const_cast<void*>(in.body))(old, first);
  }
}

// Lanes act one after another in lane order.
template <class U, int Data>
void ds_atomic(Wave& w, const Inst& in) {
  constexpr u32 bytes = sizeof(U);
  const u64 seq = issue_lds(w, in);
  LdsAccess a = begin(w, in, 0, bytes, seq);
  Workgroup& g = *w.group;
  LoadResult result;
  for (u64 m = a.lanes; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    U old;
    std::memcpy(&old, g.lds.data() + a.address[l], bytes);
    const bool was_undefined = lds_undefined(g, a.address[l], bytes);
    const U next = updated<U, Data>(w, in, l, old);
    const bool undefined = lane_undefined(w, in.src[1], l) || (was_undefined && !(in.desc->aux & 1));
    std::memcpy(g.lds.data() + a.address[l], &next, bytes);
    std::memset(g.lds_undef.data() + a.address[l], undefined, bytes);
    put_result(result, l, u64(old), was_undefined, bytes / 4);
  }
  result.lanes = a.lanes;
  if (in.dst.kind == Kind::Vgpr) land_load(w, in, in.dst.reg, bytes / 4, result, Path::Lds, seq);
}

template <class U>
Desc described(const char* op, const char* type, bool rtn, const void* body, int data) {
  const Ty ty = sizeof(U) == 8 ? Ty::B64 : Ty::B32;
  Desc d;
  d.name = keep(std::string("ds_") + op + (rtn ? "_rtn_" : "_") + type);
  d.exec = data == 2 ? &ds_atomic<U, 2> : &ds_atomic<U, 1>;
  d.body = body;
  d.dst = rtn ? ty : Ty::None;
  d.src[0] = Ty::B32, d.src[1] = ty, d.src[2] = ty, d.n_src = static_cast<u8>(1 + data);
  d.flags = kDs | kAtomic | (rtn ? u32(kLoad) : 0);
  return d;
}

template <class U>
void add(Registry& r, const char* op, const char* type, U (*f)(U, U)) {
  for (bool rtn : {false, true}) r.add(described<U>(op, type, rtn, reinterpret_cast<const void*>(f), 1));
}

// (old, first, second) -> new
template <class U>
void add2(Registry& r, const char* op, const char* type, U (*f)(U, U, U)) {
  for (bool rtn : {false, true}) r.add(described<U>(op, type, rtn, reinterpret_cast<const void*>(f), 2));
}

template <class U>
void add_exchange(Registry& r, const char* type) {
  Desc d = described<U>("wrxchg", type, true, reinterpret_cast<const void*>(&swap<U>), 1);
  d.aux = 1;  // does not look at the old value
  r.add(d);
}

template <class F, class U>
U compare_store(U old, U compared, U stored) {
  return bits<F>(old) == bits<F>(compared) ? stored : old;
}
template <class U>
U masked_or(U old, U mask, U value) {
  return (old & ~mask) | value;
}
u32 wrap(u32 old, u32 limit, u32 step) { return old >= limit ? old - limit : old + step; }

template <class U>
void of_width(Registry& r, const char* u, const char* i, const char* b, const char* f) {
  using I = std::conditional_t<sizeof(U) == 8, i64, i32>;
  using F = std::conditional_t<sizeof(U) == 8, f64, f32>;
  add<U>(r, "add", u, atomic_ops::add<U>);
  add<U>(r, "sub", u, sub<U>);
  add<U>(r, "rsub", u, rsub<U>);
  add<U>(r, "inc", u, inc<U>);
  add<U>(r, "dec", u, dec<U>);
  add<U>(r, "min", u, atomic_ops::min<U>);
  add<U>(r, "max", u, atomic_ops::max<U>);
  add<U>(r, "min", i, apply<I, U, atomic_ops::min<I>>);
  add<U>(r, "max", i, apply<I, U, atomic_ops::max<I>>);
  add<U>(r, "and", b, bit_and<U>);
  add<U>(r, "or", b, bit_or<U>);
  add<U>(r, "xor", b, bit_xor<U>);
  add<U>(r, "add", f, apply<F, U, atomic_ops::add<F>>);
  add<U>(r, "min", f, apply<F, U, atomic_ops::fmin<F>>);
  add<U>(r, "max", f, apply<F, U, atomic_ops::fmax<F>>);
  add2<U>(r, "mskor", b, masked_or<U>);
  add2<U>(r, "cmpst", b, compare_store<U, U>);
  add2<U>(r, "cmpst", f, compare_store<F, U>);
  add_exchange<U>(r, b);
}

}  // namespace

void register_ds_atomics(Registry& r) {
  of_width<u32>(r, "u32", "i32", "b32", "f32");
  of_width<u64>(r, "u64", "i64", "b64", "f64");
  add<u32>(r, "pk_add", "f16", pk_add_f16);
  add<u32>(r, "pk_add", "bf16", pk_add_bf16);
  r.add(described<u32>("wrap", "b32", true, reinterpret_cast<const void*>(&wrap), 2));
}

}  // namespace amdsim
