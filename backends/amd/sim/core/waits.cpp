#include "waits.hpp"

#include <algorithm>

#include "../arith/multiversion.hpp"
#include "../insns/vmem.hpp"
#include "registry.hpp"
#include "workgroup.hpp"

namespace amdsim {
namespace {

constexpr u64 kVmMax = 63, kLgkmMax = 15;

void prove(Counter& c, u64 outstanding) {
  if (c.issued > outstanding) c.done = std::max(c.done, c.issued - outstanding);
}

WARPWAVE_MULTIVERSION void write_rows(Wave& w, int first, int dwords, const LoadResult& r) {
  u32 field = 0;
  for (int b = 0; b < 4; ++b) field |= r.byte_mask >> b & 1 ? 0xffu << 8 * b : 0;
  for (int d = 0; d < dwords; ++d) {
    u32* row = w.v[first + d];
    for (int l = 0; l < kLanes; ++l) {
      const u32 keep = r.lanes >> l & 1 ? field : 0;
      row[l] = (r.rows[d][l] & keep) | (row[l] & ~keep);
    }
    for (int b = 0; b < 4; ++b) {
      if (!(r.byte_mask >> b & 1)) continue;
      u64& shadow = w.vundef[first + d].b[b];
      shadow = (shadow & ~r.lanes) | (r.undefined[d].b[b] & r.lanes);
    }
  }
}

void land_proven(Wave& w) {
  auto proven = [&](const Deferred& d) {
    const Counter& c = d.path == u8(Path::Vm) ? w.vm : d.path == u8(Path::Lds) ? w.lds : w.flat;
    if (d.seq > c.done) return false;
    write_rows(w, d.first_row, d.dwords, *static_cast<const LoadResult*>(d.result.get()));
    return true;
  };
  w.deferred.erase(std::remove_if(w.deferred.begin(), w.deferred.end(), proven), w.deferred.end());
}

std::string register_name(int row) {
  return row >= kAgprRow ? "a" + std::to_string(row - kAgprRow) : "v" + std::to_string(row);
}

std::string scalar_name(int reg) {
  switch (reg) {
    case 106: return "vcc_lo";
    case 107: return "vcc_hi";
    case 124: return "m0";
    default: return "s" + std::to_string(reg);
  }
}

struct Owed {
  const Inst* by = nullptr;
  std::string reg, wait;
};

Owed owed_row(const Wave& w, int row) {
  if (w.v_vm[row] > w.vm.done)
    return {w.recent_vm[w.v_vm[row] % 64], register_name(row), "vmcnt(" + std::to_string(w.vm.issued - w.v_vm[row]) + ")"};
  if (w.v_lds[row] > w.lds.done)
    return {w.recent_lds[w.v_lds[row] % 64], register_name(row), "lgkmcnt(" + std::to_string(w.lds.issued - w.v_lds[row]) + ")"};
  if (w.v_flat[row] > w.flat.done) return {w.recent_flat[w.v_flat[row] % 64], register_name(row), "vmcnt(0) lgkmcnt(0)"};
  return {};
}

// A later load of the same in-order counter may overwrite what an earlier one still owes.
bool same_counter_overwrite(const Wave& w, const Inst& in, int row) {
  if (!(in.flags & kLoad) || in.flags & kFlat) return false;
  if (w.v_flat[row] > w.flat.done) return false;
  if (in.flags & kVmem) return w.v_lds[row] <= w.lds.done;
  return in.flags & kDs && w.v_vm[row] <= w.vm.done;
}

void report(const Wave& w, const Owed& owed, const char* verb) {
  w.violate(Check::Waits, std::string(verb) + " " + owed.reg + " before the load that fills it is proven complete; needs s_waitcnt " +
            owed.wait, 0, owed.by);
}

}  // namespace

u64 issue_vm(Wave& w, const Inst& in) {
  const u64 seq = ++w.vm.issued;
  w.recent_vm[seq % 64] = &in;
  prove(w.vm, kVmMax);  // the counter is full: the hardware stalls the wave until the oldest returns
  return seq;
}

u64 issue_lds(Wave& w, const Inst& in) {
  const u64 seq = ++w.lds.issued;
  w.recent_lds[seq % 64] = &in;
  prove(w.lds, kLgkmMax);
  return seq;
}

u64 issue_smem(Wave& w, const Inst& in) {
  const u64 seq = ++w.smem.issued;
  w.recent_smem[seq % 64] = &in;
  return seq;
}

u64 issue_flat(Wave& w, const Inst& in) {
  const u64 seq = ++w.flat.issued;
  w.recent_flat[seq % 64] = &in;
  w.flat_vm = issue_vm(w, in);
  return seq;
}

void wait_counters(Wave& w, i64 simm) {
  const u64 vm = u64((simm & 15) | (simm >> 14 & 3) << 4), lgkm = u64(simm >> 8 & 15);
  if (vm < kVmMax) prove(w.vm, vm);
  if (lgkm < kLgkmMax) prove(w.lds, lgkm);
  if (lgkm == 0) w.smem.done = w.smem.issued, w.flat_lgkm = w.flat.issued;
  if (w.vm.done >= w.flat_vm) w.flat.done = std::max(w.flat.done, w.flat_lgkm);
  if (!w.deferred.empty()) land_proven(w);
  if (!w.lds_dma.empty()) land_lds_dma(w);
}

void report_pending(const Wave& w, const Inst& in) {
  for (int i = 0; i < in.n_vread; ++i)
    for (int r = 0; r < in.vread[i].count; ++r)
      if (Owed owed = owed_row(w, in.vread[i].first + r); owed.by) report(w, owed, "reads");
  for (int i = 0; i < in.n_vwrite; ++i)
    for (int r = 0; r < in.vwrite[i].count; ++r) {
      const int row = in.vwrite[i].first + r;
      if (Owed owed = owed_row(w, row); owed.by && !same_counter_overwrite(w, in, row)) report(w, owed, "overwrites");
    }
  auto scalar = [&](const RegRange& range, const char* verb) {
    for (int r = range.first; r < range.first + range.count; ++r)
      if (w.s_smem[r] > w.smem.done) report(w, {w.recent_smem[w.s_smem[r] % 64], scalar_name(r), "lgkmcnt(0)"}, verb);
  };
  for (int i = 0; i < in.n_sread; ++i) scalar(in.sread[i], "reads");
  for (int i = 0; i < in.n_swrite; ++i) scalar(in.swrite[i], "overwrites");
}

void land_load(Wave& w, const Inst& in, int first_row, int dwords, const LoadResult& result, Path path, u64 seq) {
  u64* owed = path == Path::Vm ? w.v_vm : path == Path::Lds ? w.v_lds : w.v_flat;
  if (result.lanes || dwords)
    for (int d = 0; d < dwords; ++d) owed[first_row + d] = seq;
  if (w.checking(Check::Waits)) return write_rows(w, first_row, dwords, result);
  w.deferred.push_back({&in, seq, u8(path), u8(dwords), u16(first_row), std::make_shared<LoadResult>(result)});
}

}  // namespace amdsim
