#include "banks.hpp"

#include <algorithm>

namespace amdsim {
namespace {

// Lanes serviced in the same clock, as masks.
struct Phases {
  const u64* masks;
  int count;
  int banks;
};

constexpr u64 lanes(int first, int last) { return (~0ull >> (63 - last)) & (~0ull << first); }

constexpr u64 kHalves[2] = {lanes(0, 31), lanes(32, 63)};
constexpr u64 kQuarters[4] = {lanes(0, 15), lanes(16, 31), lanes(32, 47), lanes(48, 63)};
constexpr u64 kEighths[8] = {lanes(0, 7),   lanes(8, 15),  lanes(16, 23), lanes(24, 31),
                             lanes(32, 39), lanes(40, 47), lanes(48, 55), lanes(56, 63)};
// ds_read_b128 on gfx950: measured by HipKittens.
constexpr u64 kRead128Lo = lanes(0, 3) | lanes(12, 15) | lanes(20, 27), kRead128Hi = lanes(4, 11) | lanes(16, 19) | lanes(28, 31);
constexpr u64 kRead128Wide[4] = {kRead128Lo, kRead128Hi, kRead128Lo << 32, kRead128Hi << 32};
// ds_read_b96 on gfx950 (HipKittens) and ds_read_b128 on gfx942 (Triton PR 11365): groups of eight lanes.
constexpr u64 kE0 = lanes(0, 3) | lanes(20, 23), kE1 = lanes(4, 7) | lanes(16, 19), kE2 = lanes(8, 11) | lanes(28, 31),
              kE3 = lanes(12, 15) | lanes(24, 27);
constexpr u64 kEightLanes[8] = {kE0, kE1, kE2, kE3, kE0 << 32, kE1 << 32, kE2 << 32, kE3 << 32};

Phases phases_of(const Target& t, u32 bytes, bool write) {
  const bool wide = t.lds_banks_wide == 64;
  if (bytes <= 4) return {kHalves, 2, wide && !write ? 64 : 32};
  if (bytes == 8) return wide && !write ? Phases{kHalves, 2, 64} : Phases{kQuarters, 4, 32};
  if (write) return {kEighths, 8, 32};
  if (bytes == 16 && wide) return {kRead128Wide, 4, 64};
  return {kEightLanes, 8, 32};
}

// True when no bank is asked for two different dwords: the common case, without sorting.
bool conflict_free(const u32* address, u64 members, u32 dwords, int banks) {
  u32 seen[64];
  u64 used = 0;
  for (u64 m = members; m; m &= m - 1) {
    const u32 first = address[std::countr_zero(m)] / 4;
    for (u32 d = 0; d < dwords; ++d) {
      const u32 bank = (first + d) & static_cast<u32>(banks - 1);
      if (used >> bank & 1 && seen[bank] != first + d) return false;
      used |= 1ull << bank, seen[bank] = first + d;
    }
  }
  return true;
}

// Clocks of one phase: the most distinct dwords that fall into one bank; the same dword is broadcast.
u32 phase_clocks(const u32* address, u64 members, u32 dwords, int banks) {
  if (conflict_free(address, members, dwords, banks)) return 1;
  u32 words[kLanes * 4];
  int n = 0;
  for (u64 m = members; m; m &= m - 1)
    for (u32 d = 0; d < dwords; ++d) words[n++] = address[std::countr_zero(m)] / 4 + d;
  std::sort(words, words + n);
  n = static_cast<int>(std::unique(words, words + n) - words);
  u32 load[64] = {}, worst = 1;
  for (int i = 0; i < n; ++i) worst = std::max(worst, ++load[words[i] % static_cast<u32>(banks)]);
  return worst;
}

}  // namespace

BankCost bank_cost(const Target& target, const u32* address, u64 active, u32 bytes, bool write) {
  const Phases p = phases_of(target, bytes, write);
  BankCost cost;
  for (int i = 0; i < p.count; ++i) {
    const u64 members = p.masks[i] & active;
    if (!members) continue;
    ++cost.ideal;
    cost.cycles += phase_clocks(address, members, (bytes + 3) / 4, p.banks);
  }
  return cost;
}

}  // namespace amdsim
