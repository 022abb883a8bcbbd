// Memory counters of the report.
#include <algorithm>

#include "../insns/ds.hpp"
#include "banks.hpp"
#include "global.hpp"
#include "program.hpp"

namespace amdsim {

void count_lds(Wave& w, const Inst& in, const LdsAccess& a) {
  InstCounts& c = w.group->counts->insts[in.index];
  const BankCost cost = bank_cost(*w.program->target, a.address, a.lanes, a.bytes, a.use != Use::Read);
  c.lds_cycles += cost.cycles, c.lds_ideal += cost.ideal;
  c.bytes += u64(a.bytes) * static_cast<u64>(std::popcount(a.lanes));
}

void count_global(Wave& w, const Inst& in, const u64* address, u64 lanes, u32 bytes) {
  InstCounts& c = w.group->counts->insts[in.index];
  c.bytes += u64(bytes) * static_cast<u64>(std::popcount(lanes));
  u64 line[2 * kLanes], previous = ~0ull;
  int n = 0;
  for (u64 m = lanes; m; m &= m - 1) {
    const u64 at = address[std::countr_zero(m)], first = at >> 7, last = (at + bytes - 1) >> 7;
    if (first != previous) line[n++] = first;
    if (last != first) line[n++] = last;
    previous = last;
  }
  std::sort(line, line + n);
  c.lines += static_cast<u64>(std::unique(line, line + n) - line);
}

}  // namespace amdsim
