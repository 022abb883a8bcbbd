// Wait counters with effect: which registers a memory operation still owes, and what a wait proves.
//
// Rules (CDNA3/4 ISA 4.4, amd.md section 3). vmcnt: every vector memory operation, decremented in issue order.
// lgkmcnt: LDS operations in order among themselves; scalar loads return out of order, so only lgkmcnt(0) proves one,
// and the LDS operation number j is proven by lgkmcnt(N) when more than N LDS operations follow it (itself
// included), whatever the scalar loads do. A FLAT operation counts in both and is proven by both.
#pragma once

#include "wave.hpp"

namespace amdsim {

void report_pending(const Wave& w, const Inst& in);

// Issue: gives the operation its number in the counter.
u64 issue_vm(Wave& w, const Inst& in);
u64 issue_lds(Wave& w, const Inst& in);
u64 issue_smem(Wave& w, const Inst& in);
u64 issue_flat(Wave& w, const Inst& in);

// s_waitcnt: proves operations complete and lands what was deferred.
void wait_counters(Wave& w, i64 simm);

inline bool row_pending(const Wave& w, int row) {
  return w.v_vm[row] > w.vm.done || w.v_lds[row] > w.lds.done || w.v_flat[row] > w.flat.done;
}

// Any register of this instruction still owed by a load?
inline void check_waits(const Wave& w, const Inst& in) {
  if (!(w.vm.idle() && w.lds.idle() && w.flat.idle())) {
    bool pending = false;
    for (int i = 0; i < in.n_vread; ++i)
      for (int r = 0; r < in.vread[i].count; ++r) pending |= row_pending(w, in.vread[i].first + r);
    for (int i = 0; i < in.n_vwrite; ++i)
      for (int r = 0; r < in.vwrite[i].count; ++r) pending |= row_pending(w, in.vwrite[i].first + r);
    if (pending) report_pending(w, in);
  }
  if (!w.smem.idle()) {
    bool pending = false;
    for (int i = 0; i < in.n_sread; ++i)
      for (int r = 0; r < in.sread[i].count; ++r) pending |= w.s_smem[in.sread[i].first + r] > w.smem.done;
    for (int i = 0; i < in.n_swrite; ++i)
      for (int r = 0; r < in.swrite[i].count; ++r) pending |= w.s_smem[in.swrite[i].first + r] > w.smem.done;
    if (pending) report_pending(w, in);
  }
}

// Writes the result of a load: at once while the waits are checked (nobody can see it early), else when a wait
// proves it. rows[dword][lane]; undefined may be null.
struct LoadResult {
  u32 rows[4][kLanes];
  ByteMask undefined[4];
  u64 lanes = 0;
  u8 byte_mask = 0xf;  // bytes of each dword that are written (d16 loads write half)
};
enum class Path : u8 { Vm, Lds, Flat };
void land_load(Wave& w, const Inst& in, int first_row, int dwords, const LoadResult& result, Path path, u64 seq);

}  // namespace amdsim
