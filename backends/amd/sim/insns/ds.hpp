// Shared by the LDS instruction families.
#pragma once

#include "../core/lds.hpp"
#include "../core/registry.hpp"

namespace amdsim {

void require_defined_address(const Wave& w, const Operand& op, u64 lanes);
void ds_addresses(const Wave& w, const Operand& base, i32 offset, LdsAccess& access);
// 8- and 16-bit loads: extends to a dword (half 0) or fills the low (1) or high (2) half of the old destination.
void extend_narrow(LoadResult& result, int bytes, bool sign, int half);
// Checked reads into rows from dword `at` on, and checked writes of registers (from their high half: high_half).
void lds_gather(Wave& w, const Inst& in, LdsAccess& access, LoadResult& result, int at);
void lds_scatter(Wave& w, const Inst& in, LdsAccess& access, const Operand& data, int high_half);
// Bank conflicts and bytes, for the report.
void count_lds(Wave& w, const Inst& in, const LdsAccess& access);
void register_ds_atomics(Registry&);

}  // namespace amdsim
