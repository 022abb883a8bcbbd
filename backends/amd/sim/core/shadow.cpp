#include "shadow.hpp"

#include "registry.hpp"

namespace amdsim {
namespace {

bool is16(Ty t) { return t == Ty::B16 || t == Ty::F16 || t == Ty::BF16; }

unsigned selected_bytes(Sel sel) {
  if (sel <= Sel::Byte3) return 1u << static_cast<int>(sel);
  return sel == Sel::Word0 ? 0x3 : sel == Sel::Word1 ? 0xc : 0xf;
}

// Bytes of each dword of source i that the instruction looks at.
unsigned bytes_read(const Inst& in, int i) {
  if (in.encoding == Encoding::Sdwa && i < 2) return selected_bytes(in.src[i].sel);
  if (is16(in.desc->src[i])) return in.mod.op_sel >> i & 1 ? 0xc : 0x3;
  return 0xf;
}

u64 row_lanes(const Wave& w, int row, int dwords, unsigned bytes) {
  u64 lanes = 0;
  for (int r = 0; r < dwords; ++r)
    for (int b = 0; b < 4; ++b)
      if (bytes >> b & 1) lanes |= w.vundef[row + r].b[b];
  return lanes;
}

// With DPP a lane is as undefined as the lane it reads; a lane without a source reads 0 or is not written.
u64 through_dpp(const Wave& w, const Inst& in, u64 lanes) {
  u64 out = 0;
  for (int l = 0; l < kLanes; ++l)
    if (const int s = in.dpp_map[l]; s >= 0 && w.exec() >> s & lanes >> s & 1) out |= 1ull << l;
  return out;
}

u64 source_lanes(const Wave& w, const Inst& in, int i) {
  const Operand& op = in.src[i];
  if (op.kind == Kind::Vgpr) {
    const u64 lanes = row_lanes(w, op.reg, op.dwords, bytes_read(in, i));
    return in.encoding == Encoding::Dpp && i == 0 ? through_dpp(w, in, lanes) : lanes;
  }
  const u64 undefined = w.s_undef(op);
  if (in.desc->src[i] == Ty::Mask) return undefined;  // a lane mask: bit by lane
  return undefined ? kAllLanes : 0;
}

u64 undefined_lanes(const Wave& w, const Inst& in, u64 exec) {
  u64 lanes = 0;
  for (int i = 0; i < in.n_src; ++i) lanes |= source_lanes(w, in, i);
  if (in.flags & kMaskIn && in.desc->src[in.n_src - 1] != Ty::Mask) lanes |= w.undef_pair(sreg::kVcc);
  if (in.flags & kReadsDst && in.dst.kind == Kind::Vgpr) lanes |= row_lanes(w, in.dst.reg, in.dst.dwords, 0xf);
  return in.flags & kCrossLane && lanes & exec ? kAllLanes : lanes;
}

}  // namespace

int sdwa_origin(const Inst& in, int byte) {
  const Sel sel = in.mod.dst_sel;
  if (in.encoding != Encoding::Sdwa || sel == Sel::Dword) return byte;
  const int first = sel <= Sel::Byte3 ? static_cast<int>(sel) : sel == Sel::Word1 ? 2 : 0;
  const int count = sel <= Sel::Byte3 ? 1 : 2;
  if (byte >= first && byte < first + count) return byte - first;
  if (in.mod.dst_unused == DstUnused::Preserve) return kKeptByte;
  return in.mod.dst_unused == DstUnused::Sext && byte >= first + count ? count - 1 : kZeroByte;
}

// Lane-wise default: any undefined byte that a source contributes makes the lane's result undefined.
void propagate_slow(Wave& w, const Inst& in, u64 exec) {
  if (in.desc->shadow) return in.desc->shadow(w, in);
  const u64 lanes = undefined_lanes(w, in, exec) & exec;
  for (int b = 0; b < 4; ++b) {
    const int origin = sdwa_origin(in, b);
    if (origin == kKeptByte) continue;
    for (int i = 0; i < in.n_vwrite; ++i)
      for (int r = 0; r < in.vwrite[i].count; ++r) {
        u64& m = w.vundef[in.vwrite[i].first + r].b[b];
        m = (m & ~exec) | (origin == kZeroByte ? 0 : lanes);
      }
  }
  for (int i = 0; i < in.n_swrite; ++i) {
    if (in.swrite[i].count == 2) w.set_undef_pair(in.swrite[i].first, lanes);
    else w.sundef[in.swrite[i].first] = lanes ? ~0u : 0;
  }
}

}  // namespace amdsim
