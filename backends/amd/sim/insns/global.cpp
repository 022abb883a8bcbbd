// Global loads and stores.
#include "../core/registry.hpp"
#include "../core/workgroup.hpp"

namespace amdsim {
namespace {

u64 lane_address(const Wave& w, const Inst& in, int lane) {
  const Operand &v = in.src[0], &s = in.src[in.n_src - 1];
  u64 address = w.v[v.reg][lane];
  if (v.dwords == 2) address |= u64(w.v[v.reg + 1][lane]) << 32;
  if (s.kind == Kind::Sgpr) address += w.pair(s.reg);
  return address + static_cast<u64>(static_cast<i64>(in.mod.offset));
}

u8* reach(const Wave& w, u64 address, u64 bytes, int lane) {
  Region* r = w.group->memory->find(address, bytes);
  if (!r) w.violate_at(Check::Bounds, w.group->memory->describe(address), 1ull << lane, address);
  return r ? r->host + (address - r->base) : nullptr;
}

void global_load(Wave& w, const Inst& in) {
  const u64 exec = w.exec();
  for (int l = 0; l < kLanes; ++l) {
    if (!(exec >> l & 1)) continue;
    const u8* p = reach(w, lane_address(w, in, l), 4ull * in.dst.dwords, l);
    for (int d = 0; p && d < in.dst.dwords; ++d) std::memcpy(&w.v[in.dst.reg + d][l], p + 4 * d, 4);
  }
  for (int d = 0; d < in.dst.dwords; ++d)
    for (u64& b : w.vundef[in.dst.reg + d].b) b &= ~exec;
}

void global_store(Wave& w, const Inst& in) {
  const u64 exec = w.exec();
  const Operand& data = in.src[1];
  for (int l = 0; l < kLanes; ++l) {
    if (!(exec >> l & 1)) continue;
    u8* p = reach(w, lane_address(w, in, l), 4ull * data.dwords, l);
    for (int d = 0; p && d < data.dwords; ++d) std::memcpy(p + 4 * d, &w.v[data.reg + d][l], 4);
  }
}

}  // namespace

void register_global(Registry& r) {
  const Ty widths[] = {Ty::B32, Ty::B64, Ty::B96, Ty::B128};
  const char* loads[] = {"global_load_dword", "global_load_dwordx2", "global_load_dwordx3", "global_load_dwordx4"};
  const char* stores[] = {"global_store_dword", "global_store_dwordx2", "global_store_dwordx3", "global_store_dwordx4"};
  for (int i = 0; i < 4; ++i) {
    Desc load;
    load.name = loads[i], load.exec = global_load, load.dst = widths[i], load.n_src = 2, load.flags = kVmem | kLoad;
    load.src[0] = Ty::Any, load.src[1] = Ty::Any;
    r.add(load);
    Desc store;
    store.name = stores[i], store.exec = global_store, store.n_src = 3, store.flags = kVmem | kStore;
    store.src[0] = Ty::Any, store.src[1] = widths[i], store.src[2] = Ty::Any;
    r.add(store);
  }
}

}  // namespace amdsim
