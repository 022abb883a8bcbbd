// Scalar memory: loads, buffer loads, stores, clocks and cache control (CDNA3/4 ISA 8).
#include "../core/global.hpp"
#include "../core/registry.hpp"
#include "vmem.hpp"

namespace amdsim {
namespace {

u64 offset_of(const Wave& w, const Inst& in, int slot) {
  u64 offset = static_cast<u64>(static_cast<i64>(in.mod.offset));
  if (in.n_src <= slot) return offset;
  const Operand& op = in.src[slot];
  require_defined_scalar(w, op, "the scalar offset");
  if (op.kind == Kind::Const) return offset + static_cast<u64>(static_cast<i64>(static_cast<i32>(op.value)));
  return op.kind == Kind::Off ? offset : offset + w.s32(op);
}

void require_aligned(const Wave& w, u64 address) {
  if (address & 3) w.violate_at(Check::Align, "scalar address is not a multiple of 4", 0, address);
}

void land(Wave& w, const Inst& in, const u8* host, u64 seq) {
  for (int d = 0; d < in.dst.dwords; ++d) {
    const int reg = in.dst.reg + d;
    if (host) std::memcpy(&w.sgpr[reg], host + 4 * d, 4);
    else w.sgpr[reg] = 0;
    w.sundef[reg] = 0, w.s_smem[reg] = seq;
  }
}

// Marks the bits of a landed dword that came from memory never written.
void mark_undefined(Wave& w, int reg, u64 address) {
  for (u32 bytes = undefined_global(w, address, 4); bytes; bytes &= bytes - 1) w.sundef[reg] |= 0xffu << 8 * std::countr_zero(bytes);
}

void s_load(Wave& w, const Inst& in) {
  const u64 seq = issue_smem(w, in);
  require_defined_scalar(w, in.src[0], "the base address");
  const u64 address = w.pair(in.src[0].reg) + offset_of(w, in, 1);
  require_aligned(w, address);
  if (in.mod.sc0) note_acquire(w);  // glc: past the caches, as code that polls a flag has it
  land(w, in, check_scalar(w, in, address & ~3ull, 4u * in.dst.dwords), seq);
  for (int d = 0; d < in.dst.dwords; ++d) mark_undefined(w, in.dst.reg + d, (address & ~3ull) + 4u * static_cast<u32>(d));
}

// Dwords beyond the descriptor read as 0.
void s_buffer_load(Wave& w, const Inst& in) {
  const u64 seq = issue_smem(w, in);
  require_defined_scalar(w, in.src[0], "the buffer descriptor");
  const u32* r = w.sgpr + in.src[0].reg;
  const u64 base = r[0] | u64(r[1] & 0xffff) << 32, stride = r[1] >> 16 & 0x3fff, size = stride ? stride * r[2] : r[2];
  const u64 offset = offset_of(w, in, 1) & ~3ull;
  u8 data[64] = {};
  for (u64 d = 0; d < in.dst.dwords; ++d) {
    if (offset + 4 * d + 4 > size) continue;
    if (const u8* host = check_scalar(w, in, base + offset + 4 * d, 4)) std::memcpy(data + 4 * d, host, 4);
  }
  land(w, in, data, seq);
  for (u32 d = 0; d < in.dst.dwords; ++d)
    if (offset + 4 * d + 4 <= size) mark_undefined(w, in.dst.reg + static_cast<int>(d), base + offset + 4 * d);
}

void s_store(Wave& w, const Inst& in) {
  issue_smem(w, in);
  const Operand& data = in.src[0];
  require_defined_scalar(w, data, "the stored value");
  require_defined_scalar(w, in.src[1], "the base address");
  GlobalAccess a;
  a.address[0] = w.pair(in.src[1].reg) + offset_of(w, in, 2);
  a.lanes = 1, a.bytes = 4u * data.dwords, a.align = 4, a.write = true, a.atomic = in.mod.sc0;
  GlobalPointers p;
  check_global(w, in, a, p);
  if (p.host[0]) std::memcpy(p.host[0], &w.sgpr[data.reg], a.bytes);
  if (in.mod.sc0) note_release(w);
}

// s_atomic_dec (AITER): old >= 1 and <= limit counts down, else wraps to limit.
template <bool Decrement>
void s_atomic_wrap(Wave& w, const Inst& in) {
  const u64 seq = issue_smem(w, in);
  note_acquire(w);
  require_defined_scalar(w, in.src[0], "the data");
  GlobalAccess a;
  a.address[0] = w.pair(in.src[1].reg) + offset_of(w, in, 2);
  a.lanes = 1, a.bytes = a.align = 4, a.write = a.atomic = true;
  GlobalPointers p;
  check_global(w, in, a, p);
  if (!p.host[0]) return;
  u32 old, limit = w.s32(in.src[0]), next;
  std::memcpy(&old, p.host[0], 4);
  if (Decrement) next = old == 0 || old > limit ? limit : old - 1;
  else next = old >= limit ? 0 : old + 1;
  std::memcpy(p.host[0], &next, 4);
  note_release(w);
  if (!in.mod.sc0) return;
  w.sgpr[in.src[0].reg] = old, w.sundef[in.src[0].reg] = 0, w.s_smem[in.src[0].reg] = seq;
}

// Deterministic clocks: wait states of the wave, so that differences are positive and repeatable.
void s_memtime(Wave& w, const Inst& in) {
  const u64 seq = issue_smem(w, in), now = w.clock * 4;
  u8 data[8];
  std::memcpy(data, &now, 8);
  land(w, in, data, seq);
}

void no_effect(Wave&, const Inst&) {}

// Acquire and release of the vector caches.
void buffer_inv(Wave& w, const Inst& in) {
  if (in.mod.sc1) note_acquire(w);
}
void buffer_wbl2(Wave& w, const Inst& in) {
  issue_vm(w, in);
  if (in.mod.sc1) note_release(w);
}

Desc smem(const char* name, ExecFn exec, u32 flags, Ty dst, std::initializer_list<Ty> src) {
  Desc d;
  d.name = name, d.exec = exec, d.dst = dst, d.flags = kSmem | flags;
  for (Ty t : src) d.src[d.n_src++] = t;
  return d;
}

}  // namespace

void register_smem(Registry& r) {
  const Ty widths[] = {Ty::B32, Ty::B64, Ty::B128, Ty::B256, Ty::B512};
  const char* suffix[] = {"dword", "dwordx2", "dwordx4", "dwordx8", "dwordx16"};
  for (int i = 0; i < 5; ++i) {
    r.add(smem(keep_name(std::string("s_load_") + suffix[i]), s_load, kLoad, widths[i], {Ty::B64, Ty::Any}));
    r.add(smem(keep_name(std::string("s_buffer_load_") + suffix[i]), s_buffer_load, kLoad, widths[i], {Ty::B128, Ty::Any}));
    if (i < 3) r.add(smem(keep_name(std::string("s_store_") + suffix[i]), s_store, kStore, Ty::None, {widths[i], Ty::B64, Ty::Any}));
  }
  r.add(smem("s_atomic_dec", s_atomic_wrap<true>, kAtomic | kReadsDst, Ty::None, {Ty::B32, Ty::B64, Ty::Any}));
  r.add(smem("s_atomic_inc", s_atomic_wrap<false>, kAtomic | kReadsDst, Ty::None, {Ty::B32, Ty::B64, Ty::Any}));
  r.add(smem("s_memtime", s_memtime, kLoad, Ty::B64, {}));
  r.add(smem("s_memrealtime", s_memtime, kLoad, Ty::B64, {}));
  for (const char* name : {"s_dcache_wb", "s_dcache_inv", "s_dcache_wb_vol", "s_dcache_inv_vol"}) r.add(smem(name, no_effect, 0, Ty::None, {}));
  Desc inv = smem("buffer_inv", buffer_inv, 0, Ty::None, {}), wb = smem("buffer_wbl2", buffer_wbl2, 0, Ty::None, {});
  inv.flags = wb.flags = kVmem;
  r.add(inv);
  r.add(wb);
}

}  // namespace amdsim
