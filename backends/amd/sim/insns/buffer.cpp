// MUBUF loads and stores through a buffer descriptor. Out-of-range lanes read 0 and store nothing, as in hardware;
// a descriptor that reaches beyond the buffer it points into is caught when the bytes there are accessed.
#include "buffer.hpp"

#include <string>

#include "ds.hpp"

namespace amdsim {
namespace {

BufferResource decode(const Wave& w, const Operand& op) {
  const u32* s = w.sgpr + op.reg;
  BufferResource r;
  r.base = s[0] | u64(s[1] & 0xffff) << 32;
  r.stride = s[1] >> 16 & 0x3fff, r.swizzle = s[1] >> 31, r.records = s[2];
  r.add_tid = s[3] >> 23 & 1;
  if (r.swizzle) w.unsupported("swizzled buffer descriptor");
  if (s[3] >> 30) w.unsupported("buffer descriptor type is not 0");
  return r;
}

void lane_parts(const Wave& w, const Inst& in, const Operand& vector, u32* index, u32* offset) {
  const bool both = in.mod.idxen && in.mod.offen;
  if (in.mod.idxen || in.mod.offen) require_defined_address(w, vector, w.exec());
  const u32* first = vector.kind == Kind::Vgpr ? w.v[vector.reg] : nullptr;
  for (int l = 0; l < kLanes; ++l) {
    index[l] = in.mod.idxen ? first[l] : 0;
    offset[l] = u32(in.mod.offset) + (in.mod.offen ? first[both ? kLanes + l : l] : 0);
  }
}

}  // namespace

BufferLanes buffer_lanes(Wave& w, const Inst& in, int vector, int resource, int scalar, MemType type, bool write) {
  require_defined_scalar(w, in.src[resource], "the buffer descriptor");
  require_defined_scalar(w, in.src[scalar], "the buffer's scalar offset");
  BufferLanes b;
  b.resource = decode(w, in.src[resource]);
  const u32 soffset = in.src[scalar].kind == Kind::Off ? 0 : w.s32(in.src[scalar]);
  u32 index[kLanes];
  lane_parts(w, in, in.src[vector], index, b.offset);
  const bool structured = b.resource.stride != 0 && in.mod.idxen;
  for (int l = 0; l < kLanes; ++l) {
    const u32 i = index[l] + (b.resource.add_tid ? static_cast<u32>(l) : 0);
    b.access.address[l] = b.resource.base + soffset + u64(i) * b.resource.stride + b.offset[l];
    if (structured) {
      b.index_out |= u64(i >= b.resource.records) << l;
      b.offset[l] = 0;
    }
  }
  b.access.bytes = type.bytes, b.access.align = type.align(), b.access.write = write, b.access.atomic = device_scope(in);
  u64 whole = w.exec() & ~b.index_out;
  if (!structured)
    for (int d = 0; d < type.dwords(); ++d) whole &= dword_in_range(b, whole, static_cast<u32>(d), type.bytes);
  b.access.lanes = whole;
  return b;
}

u64 dword_in_range(const BufferLanes& b, u64 lanes, u32 d, u32 bytes) {
  const u32 size = bytes < 4 ? bytes : 4;
  u64 in = 0;
  for (int l = 0; l < kLanes; ++l) in |= u64(u64(b.offset[l]) + 4 * d + size <= b.resource.records) << l;
  return in & lanes & ~b.index_out;
}

namespace {

void zero_rows(LoadResult& r, u64 lanes, int dwords) {
  for (int d = 0; d < dwords; ++d)
    for (u64 m = lanes; m; m &= m - 1) r.rows[d][std::countr_zero(m)] = 0;
  r.lanes |= lanes;
}

// Lanes that straddle the end of the descriptor are served dword by dword.
void read_straddling(Wave& w, const Inst& in, const BufferLanes& b, u64 lanes, MemType type, LoadResult& result) {
  for (int d = 0; d < type.dwords(); ++d) {
    GlobalAccess part = b.access;
    part.lanes = dword_in_range(b, lanes, static_cast<u32>(d), type.bytes);
    if (!part.lanes) continue;
    part.bytes = 4;
    for (u64& at : part.address) at += 4 * static_cast<u64>(d);
    LoadResult one;
    read_global(w, in, part, one);
    for (u64 m = one.lanes; m; m &= m - 1) result.rows[d][std::countr_zero(m)] = one.rows[0][std::countr_zero(m)];
  }
}

void buffer_load(Wave& w, const Inst& in) {
  const MemType type = MemType::of(in);
  if (device_scope(in)) note_acquire(w);
  if (in.mod.lds) {
    BufferLanes b = buffer_lanes(w, in, 0, 1, 2, type, false);
    return load_to_lds(w, in, b.access, w.exec() & ~b.access.lanes);
  }
  const u64 seq = issue_vm(w, in);
  BufferLanes b = buffer_lanes(w, in, 0, 1, 2, type, false);
  LoadResult result;
  const u64 rest = w.exec() & ~b.access.lanes;
  if (rest) zero_rows(result, rest, type.dwords());
  if (rest && type.dwords() > 1) read_straddling(w, in, b, rest, type, result);
  read_global(w, in, b.access, result);
  land_vm(w, in, result, type, Path::Vm, seq);
}

void buffer_store(Wave& w, const Inst& in) {
  const MemType type = MemType::of(in);
  issue_vm(w, in);
  BufferLanes b = buffer_lanes(w, in, 1, 2, 3, type, true);
  const u64 rest = w.exec() & ~b.access.lanes;
  write_global(w, in, b.access, in.src[0], type);
  for (int d = 0; rest && type.dwords() > 1 && d < type.dwords(); ++d) {
    GlobalAccess part = b.access;
    part.lanes = dword_in_range(b, rest, static_cast<u32>(d), type.bytes);
    part.bytes = 4;
    for (u64& at : part.address) at += 4 * static_cast<u64>(d);
    Operand data = in.src[0];
    data.reg = static_cast<u16>(data.reg + d);
    write_global(w, in, part, data, {4, false, 0});
  }
  if (device_scope(in)) note_release(w);
}

}  // namespace

void register_buffer(Registry& r) {
  for (const MemForm& f : kLoadForms) {
    Desc d;
    d.name = keep_name(std::string("buffer_load_") + f.suffix), d.exec = buffer_load, d.aux = f.type.pack();
    d.flags = kVmem | kBuffer | kLoad, d.dst = data_type(f.type.dwords());
    d.src[0] = Ty::Any, d.src[1] = Ty::B128, d.src[2] = Ty::B32, d.n_src = 3;
    r.add(d);
  }
  for (const MemForm& f : kStoreForms) {
    Desc d;
    d.name = keep_name(std::string("buffer_store_") + f.suffix), d.exec = buffer_store, d.aux = f.type.pack();
    d.flags = kVmem | kBuffer | kStore;
    d.src[0] = data_type(f.type.dwords()), d.src[1] = Ty::Any, d.src[2] = Ty::B128, d.src[3] = Ty::B32, d.n_src = 4;
    r.add(d);
  }
}

}  // namespace amdsim
