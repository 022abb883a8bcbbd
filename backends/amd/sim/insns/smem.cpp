// Scalar memory loads.
#include "../core/registry.hpp"
#include "../core/workgroup.hpp"

namespace amdsim {
namespace {

void s_load(Wave& w, const Inst& in) {
  u64 address = w.pair(in.src[0].reg) + static_cast<u64>(static_cast<i64>(in.mod.offset));
  if (in.n_src > 1) address += in.src[1].kind == Kind::Const ? static_cast<u64>(static_cast<i64>(static_cast<i32>(in.src[1].value))) : w.s32(in.src[1]);
  Region* r = w.group->memory->find(address & ~3ull, 4ull * in.dst.dwords);
  if (!r) return w.violate_at(Check::Bounds, w.group->memory->describe(address), 0, address);
  std::memcpy(&w.sgpr[in.dst.reg], r->host + ((address & ~3ull) - r->base), 4u * in.dst.dwords);
  for (int d = 0; d < in.dst.dwords; ++d) w.sundef[in.dst.reg + d] = 0;
}

}  // namespace

void register_smem(Registry& r) {
  const Ty widths[] = {Ty::B32, Ty::B64, Ty::B128, Ty::B256, Ty::B512};
  const char* names[] = {"s_load_dword", "s_load_dwordx2", "s_load_dwordx4", "s_load_dwordx8", "s_load_dwordx16"};
  for (int i = 0; i < 5; ++i) {
    Desc d;
    d.name = names[i], d.exec = s_load, d.dst = widths[i], d.n_src = 2, d.flags = kSmem | kLoad;
    d.src[0] = Ty::B64, d.src[1] = Ty::Any;
    r.add(d);
  }
}

}  // namespace amdsim
