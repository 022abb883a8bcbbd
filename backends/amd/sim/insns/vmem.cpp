#include "vmem.hpp"

#include <deque>
#include <string>

#include "../core/machine.hpp"
#include "ds.hpp"

namespace amdsim {

const MemForm kLoadForms[14] = {
    {"dword", {4, false, 0}},         {"dwordx2", {8, false, 0}},        {"dwordx3", {12, false, 0}},
    {"dwordx4", {16, false, 0}},      {"ubyte", {1, false, 0}},          {"sbyte", {1, true, 0}},
    {"ushort", {2, false, 0}},        {"sshort", {2, true, 0}},          {"ubyte_d16", {1, false, 1}},
    {"ubyte_d16_hi", {1, false, 2}},  {"sbyte_d16", {1, true, 1}},       {"sbyte_d16_hi", {1, true, 2}},
    {"short_d16", {2, false, 1}},     {"short_d16_hi", {2, false, 2}}};

const MemForm kStoreForms[8] = {
    {"dword", {4, false, 0}}, {"dwordx2", {8, false, 0}}, {"dwordx3", {12, false, 0}},    {"dwordx4", {16, false, 0}},
    {"byte", {1, false, 0}},  {"short", {2, false, 0}},   {"byte_d16_hi", {1, false, 2}}, {"short_d16_hi", {2, false, 2}}};

Ty data_type(int dwords) { return dwords == 1 ? Ty::B32 : dwords == 2 ? Ty::B64 : dwords == 3 ? Ty::B96 : Ty::B128; }

const char* keep_name(std::string name) {
  static std::deque<std::string> names;
  return names.emplace_back(std::move(name)).c_str();
}

void read_global(Wave& w, const Inst& in, GlobalAccess& a, LoadResult& result) {
  GlobalPointers p;
  check_global(w, in, a, p);
  const u32 full = a.bytes / 4;
  for (u64 m = a.lanes; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    const u8* host = p.host[l];
    if (!host) continue;
    for (u32 d = 0; d < full; ++d) std::memcpy(&result.rows[d][l], host + 4 * d, 4);
    if (a.bytes & 3) {
      result.rows[full][l] = 0;
      std::memcpy(&result.rows[full][l], host, a.bytes & 3);
    }
    for (u32 b = p.region[l]->undefined(a.address[l] - p.region[l]->base, a.bytes); b; b &= b - 1) {
      const int byte = std::countr_zero(b);
      result.undefined[byte / 4].b[byte % 4] |= 1ull << l;
    }
    result.lanes |= 1ull << l;
  }
}

void require_defined_data(const Wave& w, const Operand& data, MemType type, u64 lanes) {
  u64 undefined = 0;
  for (u32 b = 0; b < type.bytes; ++b) {
    const u32 at = b + (type.half == 2 ? 2 : 0);
    undefined |= w.vundef[data.reg + at / 4].b[at % 4];
  }
  if (undefined & lanes) w.violate(Check::Uninit, "an undefined value is stored to global memory", undefined & lanes);
}

void require_defined_scalar(const Wave& w, const Operand& op, const char* what) {
  if (op.kind != Kind::Sgpr) return;
  u32 undefined = 0;
  for (int d = 0; d < op.dwords; ++d) undefined |= w.sundef[op.reg + d];
  if (undefined) w.violate(Check::Uninit, std::string(what) + " is undefined");
}

void write_global(Wave& w, const Inst& in, GlobalAccess& a, const Operand& data, MemType type) {
  require_defined_data(w, data, type, a.lanes);
  GlobalPointers p;
  check_global(w, in, a, p);
  for (u64 m = a.lanes; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    if (!p.host[l]) continue;
    if (type.bytes >= 4) {
      for (int d = 0; d < type.dwords(); ++d) std::memcpy(p.host[l] + 4 * d, &w.v[data.reg + d][l], 4);
    } else {
      const u32 value = w.v[data.reg][l] >> (type.half == 2 ? 16 : 0);
      std::memcpy(p.host[l], &value, type.bytes);
    }
  }
}

void land_vm(Wave& w, const Inst& in, LoadResult& result, MemType type, Path path, u64 seq) {
  if (type.bytes < 4) extend_narrow(result, type.bytes, type.sign, type.half);
  land_load(w, in, in.dst.reg, type.dwords(), result, path, seq);
}

namespace {

u64 check_scratch(Wave& w, const u32* offset, u64 lanes, MemType type) {
  const u32 size = static_cast<u32>(w.scratch.size() / kLanes * 4);
  u64 outside = 0, misaligned = 0;
  for (int l = 0; l < kLanes; ++l) {
    outside |= u64(offset[l] > size || size - offset[l] < type.bytes) << l;
    misaligned |= u64((offset[l] & (type.align() - 1)) != 0) << l;
  }
  outside &= lanes, misaligned &= lanes;
  if (outside)
    w.violate_at(Check::Bounds, "scratch access of " + std::to_string(type.bytes) + " bytes outside the lane's " + std::to_string(size),
                 outside, offset[std::countr_zero(outside)]);
  if (misaligned) w.violate_at(Check::Align, "scratch address is misaligned", misaligned, offset[std::countr_zero(misaligned)]);
  return lanes & ~outside;
}

}  // namespace

namespace {

// A dword of a lane, and its undefined bytes as one bit each.
struct ScratchDword {
  u32 value = 0;
  u32 undefined = 0;
};

ScratchDword scratch_dword(const Wave& w, u32 dword, int lane) {
  const ByteMask& m = w.scratch_undef[dword];
  ScratchDword s;
  s.value = w.scratch[std::size_t(dword) * kLanes + static_cast<u32>(lane)];
  for (int b = 0; b < 4; ++b) s.undefined |= u32(m.b[b] >> lane & 1) << b;
  return s;
}

void read_scratch_bytes(const Wave& w, u32 offset, int lane, MemType type, LoadResult& result) {
  for (u32 b = 0; b < type.bytes; ++b) {
    const u32 at = offset + b;
    const ScratchDword s = scratch_dword(w, at / 4, lane);
    result.rows[b / 4][lane] |= (s.value >> (8 * (at % 4)) & 0xff) << (8 * (b % 4));
    if (s.undefined >> (at % 4) & 1) result.undefined[b / 4].b[b % 4] |= 1ull << lane;
  }
}

void write_scratch_bytes(Wave& w, u32 offset, int lane, const Operand& data, MemType type) {
  for (u32 b = 0; b < type.bytes; ++b) {
    const u32 at = offset + b, from = b + (type.half == 2 ? 2 : 0), shift = 8 * (at % 4);
    u32& cell = w.scratch[std::size_t(at / 4) * kLanes + static_cast<u32>(lane)];
    cell = (cell & ~(0xffu << shift)) | u32(row_byte(w, data.reg, lane, from)) << shift;
    u64& shadow = w.scratch_undef[at / 4].b[at % 4];
    shadow = row_byte_undefined(w, data.reg, lane, from) ? shadow | 1ull << lane : shadow & ~(1ull << lane);
  }
}

// Spills and arrays at a uniform, dword-aligned offset: whole rows move.
bool uniform_dwords(const u32* offset, u64 lanes, MemType type) {
  if (type.bytes < 4 || lanes != kAllLanes || offset[0] & 3) return false;
  for (int l = 1; l < kLanes; ++l)
    if (offset[l] != offset[0]) return false;
  return true;
}

}  // namespace

void read_scratch(Wave& w, const Inst& in, const u32* offset, u64 lanes, MemType type, LoadResult& result) {
  lanes = check_scratch(w, offset, lanes, type);
  w.group->counts->insts[in.index].bytes += u64(type.bytes) * static_cast<u64>(std::popcount(lanes));
  result.lanes |= lanes;
  if (uniform_dwords(offset, lanes, type)) {
    for (u32 d = 0; d < static_cast<u32>(type.dwords()); ++d) {
      std::memcpy(result.rows[d], &w.scratch[std::size_t(offset[0] / 4 + d) * kLanes], sizeof(Row));
      result.undefined[d] = w.scratch_undef[offset[0] / 4 + d];
    }
    return;
  }
  for (u64 m = lanes; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    for (int d = 0; d < type.dwords(); ++d) result.rows[d][l] = 0;
    read_scratch_bytes(w, offset[l], l, type, result);
  }
}

void write_scratch(Wave& w, const Inst& in, const u32* offset, u64 lanes, const Operand& data, MemType type) {
  lanes = check_scratch(w, offset, lanes, type);
  w.group->counts->insts[in.index].bytes += u64(type.bytes) * static_cast<u64>(std::popcount(lanes));
  if (uniform_dwords(offset, lanes, type)) {
    for (u32 d = 0; d < static_cast<u32>(type.dwords()); ++d) {
      std::memcpy(&w.scratch[std::size_t(offset[0] / 4 + d) * kLanes], w.v[data.reg + static_cast<int>(d)], sizeof(Row));
      w.scratch_undef[offset[0] / 4 + d] = w.vundef[data.reg + static_cast<int>(d)];
    }
    return;
  }
  for (u64 m = lanes; m; m &= m - 1) write_scratch_bytes(w, offset[std::countr_zero(m)], std::countr_zero(m), data, type);
}

// LDS address = M0[17:0] + offset + lane * 4 (dword and narrower) or * 16 (x3 and x4).
void load_to_lds(Wave& w, const Inst& in, GlobalAccess& a, u64 zero) {
  if (w.sundef[sreg::kM0]) w.violate(Check::Uninit, "M0 is undefined");
  const u64 seq = issue_vm(w, in);
  LdsAccess to;
  LdsDma dma;
  dma.inst = &in, dma.seq = seq, dma.bytes = a.bytes < 4 ? 4 : a.bytes, dma.stride = a.bytes > 4 ? 16 : 4;
  dma.first = (w.sgpr[sreg::kM0] & 0x3ffff) + u32(in.mod.offset);
  to.lanes = w.exec(), to.bytes = dma.bytes, to.align = 4, to.use = Use::Write, to.seq = seq, to.by_vm = true;
  for (int l = 0; l < kLanes; ++l) to.address[l] = dma.first + dma.stride * static_cast<u32>(l);
  LoadResult result;
  a.lanes = w.exec() & ~zero;
  read_global(w, in, a, result);
  if (a.bytes < 4) extend_narrow(result, static_cast<int>(a.bytes), MemType::of(in).sign, 0);
  dma.lanes = check_lds(w, in, to);
  dma.data.resize(std::size_t(kLanes) * 16);
  for (u64 m = result.lanes; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    for (u32 d = 0; d < dma.bytes / 4; ++d) std::memcpy(dma.data.data() + l * 16 + 4 * d, &result.rows[d][l], 4);
  }
  for (u32 byte = 0; byte < dma.bytes; ++byte)
    for (u64 m = result.undefined[byte / 4].b[byte % 4] & result.lanes; m; m &= m - 1) {
      dma.undefined.resize(dma.data.size());
      dma.undefined[static_cast<u32>(std::countr_zero(m)) * 16 + byte] = 1;
    }
  w.lds_dma.push_back(std::move(dma));
}

void land_lds_dma(Wave& w) {
  std::size_t n = 0;
  for (; n < w.lds_dma.size() && w.lds_dma[n].seq <= w.vm.done; ++n) {
    const LdsDma& dma = w.lds_dma[n];
    for (u64 m = dma.lanes; m; m &= m - 1) {
      const u32 l = static_cast<u32>(std::countr_zero(m));
      const u8* undefined = dma.undefined.empty() ? nullptr : dma.undefined.data() + l * 16;
      write_lds_bytes(*w.group, dma.first + dma.stride * l, dma.data.data() + l * 16, undefined, dma.bytes);
    }
  }
  w.lds_dma.erase(w.lds_dma.begin(), w.lds_dma.begin() + static_cast<std::ptrdiff_t>(n));
}

}  // namespace amdsim
