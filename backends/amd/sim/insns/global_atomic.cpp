// Atomics on global memory through GLOBAL, FLAT and BUFFER instructions.
#include <string>

#include "atomic_ops.hpp"
#include "buffer.hpp"
#include "ds.hpp"

namespace amdsim {
namespace {

using namespace atomic_ops;

enum class Space { Global, Flat, Buffer };

u64 lane_value(const Wave& w, int reg, int dwords, int lane) {
  return dwords == 2 ? w.v[reg][lane] | u64(w.v[reg + 1][lane]) << 32 : w.v[reg][lane];
}

template <Space S>
GlobalAccess locate(Wave& w, const Inst& in, u32 bytes) {
  const MemType type{static_cast<u8>(bytes), false, 0};
  GlobalAccess a;
  if constexpr (S == Space::Buffer) {
    a = buffer_lanes(w, in, 1, 2, 3, type, true).access;
  } else {
    require_defined_address(w, in.src[0], w.exec());
    const Operand& base = in.src[2];
    if (S == Space::Global) require_defined_scalar(w, base, "the base address");
    const u64 add = static_cast<u64>(static_cast<i64>(in.mod.offset)) + (S == Space::Global && base.kind == Kind::Sgpr ? w.pair(base.reg) : 0);
    for (int l = 0; l < kLanes; ++l) a.address[l] = lane_value(w, in.src[0].reg, in.src[0].dwords, l) + add;
    a.lanes = w.exec();
  }
  a.bytes = a.align = bytes, a.write = true, a.atomic = true;
  return a;
}

// FLAT lanes that point into LDS.
template <class U, class Step>
void lds_lanes(Wave& w, const Inst& in, GlobalAccess& a, Step&& step) {
  LdsAccess lds;
  for (int l = 0; l < kLanes; ++l) {
    lds.address[l] = u32(a.address[l]);
    if (a.lanes >> l & 1 && a.address[l] >> 32 == kSharedAperture >> 32) lds.lanes |= 1ull << l;
    if (a.lanes >> l & 1 && a.address[l] >> 32 == kPrivateAperture >> 32) w.unsupported("atomic on scratch");
  }
  if (!lds.lanes) return;
  a.lanes &= ~lds.lanes;
  lds.bytes = lds.align = sizeof(U), lds.use = Use::Atomic, lds.seq = w.flat_vm, lds.by_vm = true;
  lds.lanes = check_lds(w, in, lds);
  for (u64 m = lds.lanes; m; m &= m - 1) step(std::countr_zero(m), w.group->lds.data() + lds.address[std::countr_zero(m)]);
}

// Lanes act one after another in lane order; workgroups in turn (Launch::ordered).
template <class U, bool CompareSwap, Space S>
void atomic(Wave& w, const Inst& in) {
  using F = U (*)(U, U);
  const F f = reinterpret_cast<F>(const_cast<void*>(in.body));
  constexpr int dwords = sizeof(U) / 4;
  const Operand& data = in.src[S == Space::Buffer ? 0 : 1];
  const u64 seq = S == Space::Flat ? issue_flat(w, in) : issue_vm(w, in);
  require_defined_data(w, data, {static_cast<u8>(4 * data.dwords), false, 0}, w.exec());
  note_acquire(w);
  GlobalAccess a = locate<S>(w, in, sizeof(U));
  LoadResult result;
  const u64 all = a.lanes;
  auto step = [&](int l, u8* at) {
    U old, next = static_cast<U>(lane_value(w, data.reg, dwords, l));
    std::memcpy(&old, at, sizeof(U));
    // cmpswap: data holds the new value, then the value to compare with
    if (CompareSwap) next = old == static_cast<U>(lane_value(w, data.reg + dwords, dwords, l)) ? next : old;
    else next = f(old, next);
    w.group->progress += next != old;
    std::memcpy(at, &next, sizeof(U));
    for (int d = 0; d < dwords; ++d) result.rows[d][l] = u32(u64(old) >> 32 * d);
  };
  if (S == Space::Flat) lds_lanes<U>(w, in, a, step);
  GlobalPointers p;
  check_global(w, in, a, p);
  for (u64 m = a.lanes; m; m &= m - 1)
    if (u8* at = p.host[std::countr_zero(m)]) step(std::countr_zero(m), at);
  note_release(w);
  result.lanes = all;
  if (!in.mod.sc0) return;
  const int dst = S == Space::Buffer ? data.reg : in.dst.reg;
  if (S == Space::Buffer)
    for (u64 m = w.exec() & ~all; m; m &= m - 1)
      for (int d = 0; d < dwords; ++d) result.rows[d][std::countr_zero(m)] = 0;
  land_load(w, in, dst, dwords, result, S == Space::Flat ? Path::Flat : Path::Vm, seq);
}

template <class U, bool Cs>
void add_forms(Registry& r, const std::string& op, U (*f)(U, U), u8 targets) {
  const Ty value = sizeof(U) == 8 ? Ty::B64 : Ty::B32, data = Cs ? (sizeof(U) == 8 ? Ty::B128 : Ty::B64) : value;
  auto base = [&](const char* prefix, ExecFn exec, u32 flags) {
    Desc d;
    d.name = keep_name(prefix + op), d.exec = exec, d.body = reinterpret_cast<const void*>(f);
    d.flags = kVmem | kAtomic | flags, d.targets = targets;
    return d;
  };
  Desc g = base("global_atomic_", &atomic<U, Cs, Space::Global>, 0);
  g.dst = value, g.src[0] = Ty::Any, g.src[1] = data, g.src[2] = Ty::Any, g.n_src = 3;
  r.add(g);
  Desc fl = base("flat_atomic_", &atomic<U, Cs, Space::Flat>, kFlat);
  fl.dst = value, fl.src[0] = Ty::B64, fl.src[1] = data, fl.n_src = 2;
  r.add(fl);
  Desc b = base("buffer_atomic_", &atomic<U, Cs, Space::Buffer>, kBuffer);
  b.src[0] = data, b.src[1] = Ty::Any, b.src[2] = Ty::B128, b.src[3] = Ty::B32, b.n_src = 4;
  r.add(b);
}

template <class U>
void add(Registry& r, const char* op, U (*f)(U, U), u8 targets = kBothTargets) {
  add_forms<U, false>(r, std::string(op) + (sizeof(U) == 8 && !std::strstr(op, "f64") ? "_x2" : ""), f, targets);
}

}  // namespace

void register_global_atomics(Registry& r) {
  add<u32>(r, "swap", swap<u32>);
  add<u32>(r, "add", atomic_ops::add<u32>);
  add<u32>(r, "sub", sub<u32>);
  add<u32>(r, "smin", apply<i32, u32, atomic_ops::min<i32>>);
  add<u32>(r, "umin", atomic_ops::min<u32>);
  add<u32>(r, "smax", apply<i32, u32, atomic_ops::max<i32>>);
  add<u32>(r, "umax", atomic_ops::max<u32>);
  add<u32>(r, "and", bit_and<u32>);
  add<u32>(r, "or", bit_or<u32>);
  add<u32>(r, "xor", bit_xor<u32>);
  add<u32>(r, "inc", inc<u32>);
  add<u32>(r, "dec", dec<u32>);
  add<u32>(r, "add_f32", apply<f32, u32, atomic_ops::add<f32>>);
  add<u32>(r, "pk_add_f16", pk_add_f16);
  add<u32>(r, "pk_add_bf16", pk_add_bf16);
  add<u64>(r, "swap", swap<u64>);
  add<u64>(r, "add", atomic_ops::add<u64>);
  add<u64>(r, "sub", sub<u64>);
  add<u64>(r, "smin", apply<i64, u64, atomic_ops::min<i64>>);
  add<u64>(r, "umin", atomic_ops::min<u64>);
  add<u64>(r, "smax", apply<i64, u64, atomic_ops::max<i64>>);
  add<u64>(r, "umax", atomic_ops::max<u64>);
  add<u64>(r, "and", bit_and<u64>);
  add<u64>(r, "or", bit_or<u64>);
  add<u64>(r, "xor", bit_xor<u64>);
  add<u64>(r, "inc", inc<u64>);
  add<u64>(r, "dec", dec<u64>);
  add<u64>(r, "add_f64", apply<f64, u64, atomic_ops::add<f64>>);
  add<u64>(r, "min_f64", apply<f64, u64, atomic_ops::fmin<f64>>);
  add<u64>(r, "max_f64", apply<f64, u64, atomic_ops::fmax<f64>>);
  add_forms<u32, true>(r, "cmpswap", swap<u32>, kBothTargets);
  add_forms<u64, true>(r, "cmpswap_x2", swap<u64>, kBothTargets);
}

}  // namespace amdsim
