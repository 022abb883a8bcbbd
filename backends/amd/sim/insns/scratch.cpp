// SCRATCH loads and stores: each lane's private segment.
#include <string>

#include "ds.hpp"
#include "vmem.hpp"

namespace amdsim {
namespace {

void offsets(Wave& w, const Inst& in, const Operand& vector, const Operand& scalar, u32* out) {
  if (vector.kind == Kind::Vgpr) require_defined_address(w, vector, w.exec());
  require_defined_scalar(w, scalar, "the scratch offset");
  const u32 add = u32(in.mod.offset) + (scalar.kind == Kind::Sgpr ? w.s32(scalar) : 0);
  for (int l = 0; l < kLanes; ++l) out[l] = add + (vector.kind == Kind::Vgpr ? w.v[vector.reg][l] : 0);
}

void scratch_load(Wave& w, const Inst& in) {
  const MemType type = MemType::of(in);
  const u64 seq = issue_vm(w, in);
  u32 offset[kLanes];
  offsets(w, in, in.src[0], in.src[1], offset);
  LoadResult result;
  read_scratch(w, in, offset, w.exec(), type, result);
  land_vm(w, in, result, type, Path::Vm, seq);
}

void scratch_store(Wave& w, const Inst& in) {
  issue_vm(w, in);
  u32 offset[kLanes];
  offsets(w, in, in.src[0], in.src[2], offset);
  write_scratch(w, in, offset, w.exec(), in.src[1], MemType::of(in));
}

Desc make(const std::string& name, ExecFn exec, MemType type, u32 flags, Ty dst, std::initializer_list<Ty> src) {
  Desc d;
  d.name = keep_name(name), d.exec = exec, d.aux = type.pack(), d.flags = kVmem | kScratch | flags, d.dst = dst;
  for (Ty t : src) d.src[d.n_src++] = t;
  return d;
}

}  // namespace

void register_scratch(Registry& r) {
  for (const MemForm& f : kLoadForms)
    r.add(make(std::string("scratch_load_") + f.suffix, scratch_load, f.type, kLoad, data_type(f.type.dwords()), {Ty::Any, Ty::Any}));
  for (const MemForm& f : kStoreForms)
    r.add(make(std::string("scratch_store_") + f.suffix, scratch_store, f.type, kStore, Ty::None, {Ty::Any, data_type(f.type.dwords()), Ty::Any}));
}

}  // namespace amdsim
