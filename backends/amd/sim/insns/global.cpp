// GLOBAL and FLAT loads, stores and direct loads to LDS.
#include <string>

#include "ds.hpp"
#include "vmem.hpp"

namespace amdsim {
namespace {

void require_defined_vector(const Wave& w, const Operand& op, u64 lanes) {
  if (op.kind == Kind::Vgpr) require_defined_address(w, op, lanes);
}

// 64-bit vector address, or scalar base plus unsigned 32-bit vector offset; then the signed immediate.
void addresses(Wave& w, const Inst& in, const Operand& vector, const Operand& base, GlobalAccess& a) {
  a.lanes = w.exec();
  require_defined_vector(w, vector, a.lanes);
  require_defined_scalar(w, base, "the base address");
  u64 add = static_cast<u64>(static_cast<i64>(in.mod.offset));
  if (base.kind == Kind::Sgpr) add += w.pair(base.reg);
  const u32* lo = w.v[vector.reg];
  if (vector.dwords == 2) {
    for (int l = 0; l < kLanes; ++l) a.address[l] = (u64(lo[kLanes + l]) << 32 | lo[l]) + add;
  } else {
    for (int l = 0; l < kLanes; ++l) a.address[l] = lo[l] + add;
  }
}

GlobalAccess access_of(Wave& w, const Inst& in, int vector, int base, MemType type, bool write) {
  GlobalAccess a;
  addresses(w, in, in.src[vector], base < 0 ? Operand{} : in.src[base], a);
  a.bytes = type.bytes, a.align = type.align(), a.write = write, a.atomic = device_scope(in);
  return a;
}

void global_load(Wave& w, const Inst& in) {
  const MemType type = MemType::of(in);
  const u64 seq = issue_vm(w, in);
  if (device_scope(in)) note_acquire(w);
  GlobalAccess a = access_of(w, in, 0, 1, type, false);
  LoadResult result;
  read_global(w, in, a, result);
  land_vm(w, in, result, type, Path::Vm, seq);
}

void global_store(Wave& w, const Inst& in) {
  const MemType type = MemType::of(in);
  issue_vm(w, in);
  GlobalAccess a = access_of(w, in, 0, 2, type, true);
  write_global(w, in, a, in.src[1], type);
  if (device_scope(in)) note_release(w);
}

void global_load_lds(Wave& w, const Inst& in) {
  GlobalAccess a = access_of(w, in, 0, 1, MemType::of(in), false);
  load_to_lds(w, in, a, 0);
}

// Which lanes of a FLAT address fall into which aperture.
struct Apertures {
  u64 shared = 0, priv = 0;
  u32 offset[kLanes];
};

Apertures split(GlobalAccess& a) {
  Apertures s;
  for (int l = 0; l < kLanes; ++l) {
    const u64 high = a.address[l] >> 32;
    s.shared |= u64(high == kSharedAperture >> 32) << l;
    s.priv |= u64(high == kPrivateAperture >> 32) << l;
    s.offset[l] = u32(a.address[l]);
  }
  s.shared &= a.lanes, s.priv &= a.lanes;
  a.lanes &= ~(s.shared | s.priv);
  return s;
}

LdsAccess lds_part(const Apertures& s, MemType type, Use use, u64 seq) {
  LdsAccess a;
  std::copy(std::begin(s.offset), std::end(s.offset), std::begin(a.address));
  a.lanes = s.shared, a.bytes = type.bytes, a.align = type.align(), a.use = use, a.seq = seq, a.by_vm = true;
  return a;
}

void flat_load(Wave& w, const Inst& in) {
  const MemType type = MemType::of(in);
  const u64 seq = issue_flat(w, in);
  if (device_scope(in)) note_acquire(w);
  GlobalAccess a = access_of(w, in, 0, -1, type, false);
  const Apertures s = split(a);
  LoadResult result;
  read_global(w, in, a, result);
  if (s.priv) read_scratch(w, in, s.offset, s.priv, type, result);
  if (s.shared) {
    LdsAccess lds = lds_part(s, type, Use::Read, w.flat_vm);
    count_lds(w, in, lds);
    lds_gather(w, in, lds, result, 0);
  }
  land_vm(w, in, result, type, Path::Flat, seq);
}

void flat_store(Wave& w, const Inst& in) {
  const MemType type = MemType::of(in);
  issue_flat(w, in);
  GlobalAccess a = access_of(w, in, 0, -1, type, true);
  const Apertures s = split(a);
  write_global(w, in, a, in.src[1], type);
  if (s.priv) write_scratch(w, in, s.offset, s.priv, in.src[1], type);
  if (s.shared) {
    LdsAccess lds = lds_part(s, type, Use::Write, w.flat_vm);
    count_lds(w, in, lds);
    lds_scatter(w, in, lds, in.src[1], type.half == 2 ? 1 : 0);
  }
  if (device_scope(in)) note_release(w);
}

Desc make(const std::string& name, ExecFn exec, MemType type, u32 flags, Ty dst, std::initializer_list<Ty> src) {
  Desc d;
  d.name = keep_name(name), d.exec = exec, d.aux = type.pack(), d.flags = kVmem | flags, d.dst = dst;
  for (Ty t : src) d.src[d.n_src++] = t;
  return d;
}

void register_lds_dma(Registry& r) {
  const MemForm forms[] = {{"ubyte", {1, false, 0}}, {"sbyte", {1, true, 0}}, {"ushort", {2, false, 0}}, {"sshort", {2, true, 0}},
                           {"dword", {4, false, 0}}, {"dwordx3", {12, false, 0}}, {"dwordx4", {16, false, 0}}};
  for (const MemForm& f : forms) {
    Desc d = make(std::string("global_load_lds_") + f.suffix, global_load_lds, f.type, kLoad | kLdsDma | kReadsM0, Ty::None, {Ty::Any, Ty::Any});
    if (f.type.bytes > 4) d.targets = kGfx950;
    r.add(d);
  }
}

}  // namespace

void register_global(Registry& r) {
  for (const MemForm& f : kLoadForms) {
    const Ty data = data_type(f.type.dwords());
    r.add(make(std::string("global_load_") + f.suffix, global_load, f.type, kLoad, data, {Ty::Any, Ty::Any}));
    r.add(make(std::string("flat_load_") + f.suffix, flat_load, f.type, kLoad | kFlat, data, {Ty::B64}));
  }
  for (const MemForm& f : kStoreForms) {
    const Ty data = data_type(f.type.dwords());
    r.add(make(std::string("global_store_") + f.suffix, global_store, f.type, kStore, Ty::None, {Ty::Any, data, Ty::Any}));
    r.add(make(std::string("flat_store_") + f.suffix, flat_store, f.type, kStore | kFlat, Ty::None, {Ty::B64, data}));
  }
  register_lds_dma(r);
  register_global_atomics(r);
}

}  // namespace amdsim
