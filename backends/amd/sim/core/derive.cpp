// What each decoded instruction reads and writes, for the hazard, wait, uninitialised and resource checks.
#include <algorithm>
#include <iterator>

#include "../insns/vop.hpp"
#include "decode.hpp"
#include "hazards.hpp"

namespace amdsim {
namespace {

void add_range(RegRange* list, u8& count, int first, int length) {
  if (length > 0) list[count++] = {static_cast<u16>(first), static_cast<u16>(length)};
}

void note(const Operand& op, RegRange* vlist, u8& nv, RegRange* slist, u8& ns) {
  if (op.kind == Kind::Vgpr) add_range(vlist, nv, op.reg, op.dwords);
  if (op.kind == Kind::Sgpr) add_range(slist, ns, op.reg, op.dwords);
}

// limits: highest VGPR + 1, highest AGPR + 1, highest SGPR + 1 in 16-bit fields, top bit of each clear.
u64 packed_need(const Inst& in) {
  int v = 0, a = 0, s = 0;
  auto vector = [&](const RegRange& r) {
    int end = r.first + r.count;
    if (r.first >= kAgprRow) a = std::max(a, end - kAgprRow);
    else v = std::max(v, end);
  };
  auto scalar = [&](const RegRange& r) {
    if (r.first < sreg::kFlatScratch) s = std::max(s, r.first + r.count);
  };
  std::for_each(in.vread, in.vread + in.n_vread, vector);
  std::for_each(in.vwrite, in.vwrite + in.n_vwrite, vector);
  std::for_each(in.sread, in.sread + in.n_sread, scalar);
  std::for_each(in.swrite, in.swrite + in.n_swrite, scalar);
  return static_cast<u64>(v) | static_cast<u64>(a) << 16 | static_cast<u64>(s) << 32;
}

bool partial_write(const Inst& in) {
  if (in.encoding == Encoding::Sdwa) return in.mod.dst_sel != Sel::Dword && in.mod.dst_unused == DstUnused::Preserve;
  return in.flags & kPartial;
}

// A lane-wise instruction without modifiers may take the short way; one that reads more rows than the list holds may not.
void derive_plain(Inst& in) {
  if ((in.exec != exec_valu && in.exec != exec_plain) || !in.plain) return;
  const bool masked = in.flags & kMaskIn && in.desc->src[in.n_src - 1] == Ty::Mask;
  in.lane_sources = static_cast<u8>(in.n_src - (masked ? 1 : 0));
  in.old_dst = in.flags & kReadsDst && in.lane_sources < 3 ? static_cast<i8>(in.lane_sources == 1 ? 1 : 2) : i8{-1};
  in.n_read_rows = 0;
  int rows = 0;
  for (int i = 0; i < in.n_vread; ++i)
    for (int r = 0; r < in.vread[i].count; ++r, ++rows)
      if (rows < int(std::size(in.read_rows))) in.read_rows[in.n_read_rows++] = static_cast<u16>(in.vread[i].first + r);
  in.exec = rows <= int(std::size(in.read_rows)) ? exec_plain : exec_valu;
}

}  // namespace

void derive_checks(Inst& in, const Target& target) {
  const bool store = in.flags & kStore;
  for (int i = 0; i < in.n_src; ++i) note(in.src[i], in.vread, in.n_vread, in.sread, in.n_sread);
  if (store) note(in.dst, in.vread, in.n_vread, in.sread, in.n_sread);
  else note(in.dst, in.vwrite, in.n_vwrite, in.swrite, in.n_swrite);
  note(in.sdst, in.vwrite, in.n_vwrite, in.swrite, in.n_swrite);
  const bool reads_dst = in.flags & kReadsDst || partial_write(in) ||
                         (in.encoding == Encoding::Dpp && !in.mod.bound_ctrl);
  if (reads_dst && in.n_vread < 5) note(in.dst, in.vread, in.n_vread, in.sread, in.n_sread);
  const bool swaps = in.desc->name == std::string_view("v_swap_b32") || in.flags & kPermSwap;
  if (swaps) note(in.src[0], in.vwrite, in.n_vwrite, in.swrite, in.n_swrite);
  const bool returns_in_data = in.flags & kAtomic && in.flags & kBuffer && in.mod.sc0;
  if (returns_in_data) note(in.src[0], in.vwrite, in.n_vwrite, in.swrite, in.n_swrite);
  if (in.flags & kMaskIn && in.desc->src[in.n_src - 1] != Ty::Mask) add_range(in.sread, in.n_sread, sreg::kVcc, 2);
  if (in.flags & kReadsM0) add_range(in.sread, in.n_sread, sreg::kM0, 1);
  in.need = packed_need(in);
  derive_hazards(in, target);
  derive_plain(in);
}

}  // namespace amdsim
