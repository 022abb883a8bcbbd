// LDS reads, writes, transposing reads and permutes (CDNA3/4 ISA 12, "LDS instructions").
#include "ds.hpp"

#include <array>

#include "../core/shadow.hpp"

namespace amdsim {

void require_defined_address(const Wave& w, const Operand& op, u64 lanes) {
  u64 undefined = 0;
  for (int d = 0; d < op.dwords; ++d) undefined |= w.vundef[op.reg + d].any();
  if (undefined & lanes) w.violate(Check::Uninit, "the address is undefined", undefined & lanes);
}

void ds_addresses(const Wave& w, const Operand& base, i32 offset, LdsAccess& a) {
  a.lanes = w.exec();
  require_defined_address(w, base, a.lanes);
  const u32* row = w.v[base.reg];
  for (int l = 0; l < kLanes; ++l) a.address[l] = row[l] + u32(offset);
}

namespace {

// Copies the undefined flags of up to four LDS bytes into the shadow of one dword of the result.
void note_undefined(ByteMask& shadow, int lane, u32 flags) {
  for (int b = 0; b < 4; ++b)
    if (flags >> 8 * b & 1) shadow.b[b] |= 1ull << lane;
}

bool rows_defined(const Wave& w, const Operand& data, u64 lanes) {
  u64 any = 0;
  for (int d = 0; d < data.dwords; ++d) any |= w.vundef[data.reg + d].any();
  return !(any & lanes);
}

void scatter_bytes(Wave& w, const LdsAccess& a, const Operand& data, int high_half, int lane) {
  u8 bytes[16], undefined[16];
  for (u32 b = 0; b < a.bytes; ++b) {
    const u32 at = b + static_cast<u32>(high_half) * 2;
    bytes[b] = static_cast<u8>(w.v[data.reg + at / 4][lane] >> (8 * (at % 4)));
    undefined[b] = w.vundef[data.reg + at / 4].b[at % 4] >> lane & 1;
  }
  write_lds_bytes(*w.group, a.address[lane], bytes, undefined, a.bytes);
}

}  // namespace

// Reads `bytes` per lane into consecutive dwords of the result, starting at dword `at`.
void lds_gather(Wave& w, const Inst& in, LdsAccess& a, LoadResult& result, int at) {
  a.lanes = check_lds(w, in, a);
  const u8 *data = w.group->lds.data(), *undefined = w.group->lds_undef.data();
  const int dwords = static_cast<int>(a.bytes + 3) / 4;
  const u32 last = a.bytes - 4 * static_cast<u32>(dwords - 1);
  for (int d = 0; d < dwords; ++d) {
    const u32 size = d + 1 < dwords ? 4 : last, offset = 4 * static_cast<u32>(d);
    for (u64 m = a.lanes; m; m &= m - 1) {
      const int l = std::countr_zero(m);
      u32 value = 0, flags = 0;
      std::memcpy(&value, data + a.address[l] + offset, size);
      std::memcpy(&flags, undefined + a.address[l] + offset, size);
      result.rows[at + d][l] = value;
      if (flags) [[unlikely]] note_undefined(result.undefined[at + d], l, flags);
    }
  }
  result.lanes |= a.lanes;
}

void lds_scatter(Wave& w, const Inst& in, LdsAccess& a, const Operand& data, int high_half) {
  a.lanes = check_lds(w, in, a);
  const bool whole = a.bytes >= 4 && rows_defined(w, data, a.lanes);
  for (u64 m = a.lanes; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    if (!whole) {
      scatter_bytes(w, a, data, high_half, l);
      continue;
    }
    u8* to = w.group->lds.data() + a.address[l];
    for (u32 d = 0; d < a.bytes / 4; ++d) std::memcpy(to + 4 * d, &w.v[data.reg + static_cast<int>(d)][l], 4);
    std::memset(w.group->lds_undef.data() + a.address[l], 0, a.bytes);
  }
}

namespace {

void store_undefined(ByteMask& m, int lane, int byte, bool undefined) {
  const u64 bit = 1ull << lane;
  m.b[byte] = undefined ? m.b[byte] | bit : m.b[byte] & ~bit;
}

u32 natural_align(u32 bytes) { return bytes == 12 ? 16 : bytes; }

LdsAccess access_for(const Wave& w, const Operand& base, i32 offset, u32 bytes, Use use, u64 seq) {
  LdsAccess a;
  ds_addresses(w, base, offset, a);
  a.bytes = bytes, a.align = natural_align(bytes), a.use = use, a.seq = seq;
  return a;
}

template <int Bytes>
void ds_read(Wave& w, const Inst& in) {
  const u64 seq = issue_lds(w, in);
  LdsAccess a = access_for(w, in.src[0], in.mod.offset, Bytes, Use::Read, seq);
  LoadResult result;
  count_lds(w, in, a);
  lds_gather(w, in, a, result, 0);
  land_load(w, in, in.dst.reg, (Bytes + 3) / 4, result, Path::Lds, seq);
}

// Narrow reads: zero- or sign-extended to a dword, or into one half of it (d16) keeping the other.
enum class Half { None, Low, High };
template <int Bytes, bool Signed, Half Into>
void ds_read_narrow(Wave& w, const Inst& in) {
  const u64 seq = issue_lds(w, in);
  LdsAccess a = access_for(w, in.src[0], in.mod.offset, Bytes, Use::Read, seq);
  LoadResult result;
  count_lds(w, in, a);
  lds_gather(w, in, a, result, 0);
  extend_narrow(result, Bytes, Signed, static_cast<int>(Into));
  land_load(w, in, in.dst.reg, 1, result, Path::Lds, seq);
}

template <int Bytes, int High>
void ds_write(Wave& w, const Inst& in) {
  const u64 seq = issue_lds(w, in);
  LdsAccess a = access_for(w, in.src[0], in.mod.offset, Bytes, Use::Write, seq);
  count_lds(w, in, a);
  lds_scatter(w, in, a, in.src[1], High);
}

template <int Bytes, int Stride>
void ds_read2(Wave& w, const Inst& in) {
  const u64 seq = issue_lds(w, in);
  LoadResult result;
  const i32 offsets[2] = {in.mod.offset * Bytes * Stride, in.mod.offset1 * Bytes * Stride};
  for (int i = 0; i < 2; ++i) {
    LdsAccess a = access_for(w, in.src[0], offsets[i], Bytes, Use::Read, seq);
    count_lds(w, in, a);
    lds_gather(w, in, a, result, i * Bytes / 4);
  }
  land_load(w, in, in.dst.reg, Bytes / 2, result, Path::Lds, seq);
}

template <int Bytes, int Stride>
void ds_write2(Wave& w, const Inst& in) {
  const u64 seq = issue_lds(w, in);
  const i32 offsets[2] = {in.mod.offset * Bytes * Stride, in.mod.offset1 * Bytes * Stride};
  for (int i = 0; i < 2; ++i) {
    LdsAccess a = access_for(w, in.src[0], offsets[i], Bytes, Use::Write, seq);
    count_lds(w, in, a);
    lds_scatter(w, in, a, in.src[1 + i], 0);
  }
}

// Transposing reads (amd.md 2.2): in each group of 16 lanes, with E elements a lane and CAT the lanes' data in lane
// order, element i of lane j is CAT[16 i + j].
template <int Bits, int Bytes>
void ds_read_tr(Wave& w, const Inst& in) {
  if (w.exec() != kAllLanes) w.violate(Check::Bounds, "a transposing LDS read needs all lanes active", ~w.exec());
  const u64 seq = issue_lds(w, in);
  LdsAccess a = access_for(w, in.src[0], in.mod.offset, Bytes, Use::Read, seq);
  a.align = Bytes == 12 ? 16 : 8;
  count_lds(w, in, a);
  LoadResult plain, result;
  lds_gather(w, in, a, plain, 0);
  constexpr int elements = Bytes * 8 / Bits;
  std::memset(result.rows, 0, sizeof result.rows);
  for (int l = 0; l < kLanes; ++l) {
    for (int i = 0; i < elements; ++i) {
      const int cat = 16 * i + l % 16, from = (l & ~15) + cat / elements, bit = cat % elements * Bits, to = i * Bits;
      for (int b = 0; b < Bits; ++b) {
        const int s = bit + b, d = to + b;
        result.rows[d / 32][l] |= (plain.rows[s / 32][from] >> (s % 32) & 1) << (d % 32);
        if (plain.undefined[s / 32].b[s % 32 / 8] >> from & 1) store_undefined(result.undefined[d / 32], l, d % 32 / 8, true);
      }
    }
  }
  result.lanes = plain.lanes;
  land_load(w, in, in.dst.reg, Bytes / 4, result, Path::Lds, seq);
}

void copy_lane(LoadResult& r, const Wave& w, int row, int to, int from) {
  r.rows[0][to] = w.v[row][from];
  for (int b = 0; b < 4; ++b)
    if (w.vundef[row].b[b] >> from & 1) r.undefined[0].b[b] |= 1ull << to;
}

// dst[l] = src[addr[l] / 4 mod 64]; an inactive source lane gives 0.
void ds_bpermute_b32(Wave& w, const Inst& in) {
  const u64 seq = issue_lds(w, in), exec = w.exec();
  require_defined_address(w, in.src[0], exec);
  LoadResult r;
  for (int l = 0; l < kLanes; ++l) {
    const int from = (w.v[in.src[0].reg][l] + u32(in.mod.offset)) / 4 % kLanes;
    r.rows[0][l] = 0;
    if (exec >> from & 1) copy_lane(r, w, in.src[1].reg, l, from);
  }
  r.lanes = exec;
  land_load(w, in, in.dst.reg, 1, r, Path::Lds, seq);
}

// Scatter; the highest active lane that names a destination wins; others receive 0.
void ds_permute_b32(Wave& w, const Inst& in) {
  const u64 seq = issue_lds(w, in), exec = w.exec();
  require_defined_address(w, in.src[0], exec);
  LoadResult r;
  std::fill(std::begin(r.rows[0]), std::end(r.rows[0]), 0);
  for (int l = 0; l < kLanes; ++l) {
    if (!(exec >> l & 1)) continue;
    const int to = (w.v[in.src[0].reg][l] + u32(in.mod.offset)) / 4 % kLanes;
    for (u64& b : r.undefined[0].b) b &= ~(1ull << to);
    copy_lane(r, w, in.src[1].reg, to, l);
  }
  r.lanes = exec;
  land_load(w, in, in.dst.reg, 1, r, Path::Lds, seq);
}

int reverse5(int x) { return (x & 1) << 4 | (x & 2) << 2 | (x & 4) | (x & 8) >> 2 | (x & 16) >> 4; }

// Source lane of ds_swizzle_b32 (ISA, "DS_SWIZZLE_B32"): FFT, rotate, quad permute, bit mask.
int swizzle_source(int lane, int offset) {
  const int group = lane & 32, in_group = lane & 31;
  if (offset >= 0xe000) {
    const u32 mask = u32(offset) & 31;
    return group | reverse5(in_group) >> std::popcount(mask) | (in_group & int(mask));
  }
  if (offset >= 0xc000) {
    const int amount = offset >> 5 & 31, keep = offset & 31, n = offset & 0x400 ? -amount : amount;
    return group | (in_group & keep) | ((in_group + n) & ~keep & 31);
  }
  if (offset & 0x8000) return (lane & ~3) | (offset >> (2 * (lane & 3)) & 3);
  return group | (((in_group & (offset & 31)) | (offset >> 5 & 31)) ^ (offset >> 10 & 31));
}

void ds_swizzle_b32(Wave& w, const Inst& in) {
  const u64 seq = issue_lds(w, in), exec = w.exec();
  LoadResult r;
  for (int l = 0; l < kLanes; ++l) {
    const int from = swizzle_source(l, in.mod.offset);
    r.rows[0][l] = 0;
    if (exec >> from & 1) copy_lane(r, w, in.src[0].reg, l, from);
  }
  r.lanes = exec;
  land_load(w, in, in.dst.reg, 1, r, Path::Lds, seq);
}

Desc ds(const char* name, ExecFn exec, Ty dst, std::initializer_list<Ty> src, u32 flags = 0) {
  Desc d;
  d.name = name, d.exec = exec, d.dst = dst, d.flags = kDs | flags;
  for (Ty t : src) d.src[d.n_src++] = t;
  return d;
}

void register_reads(Registry& r) {
  auto read = [&](const char* name, ExecFn exec, Ty dst, u32 flags = 0) { r.add(ds(name, exec, dst, {Ty::B32}, kLoad | flags)); };
  read("ds_read_b32", ds_read<4>, Ty::B32);
  read("ds_read_b64", ds_read<8>, Ty::B64);
  read("ds_read_b96", ds_read<12>, Ty::B96);
  read("ds_read_b128", ds_read<16>, Ty::B128);
  read("ds_read_u8", ds_read_narrow<1, false, Half::None>, Ty::B32);
  read("ds_read_i8", ds_read_narrow<1, true, Half::None>, Ty::B32);
  read("ds_read_u16", ds_read_narrow<2, false, Half::None>, Ty::B32);
  read("ds_read_i16", ds_read_narrow<2, true, Half::None>, Ty::B32);
  read("ds_read_u8_d16", ds_read_narrow<1, false, Half::Low>, Ty::B32);
  read("ds_read_u8_d16_hi", ds_read_narrow<1, false, Half::High>, Ty::B32);
  read("ds_read_i8_d16", ds_read_narrow<1, true, Half::Low>, Ty::B32);
  read("ds_read_i8_d16_hi", ds_read_narrow<1, true, Half::High>, Ty::B32);
  read("ds_read_u16_d16", ds_read_narrow<2, false, Half::Low>, Ty::B32);
  read("ds_read_u16_d16_hi", ds_read_narrow<2, false, Half::High>, Ty::B32);
  read("ds_read2_b32", ds_read2<4, 1>, Ty::B64);
  read("ds_read2st64_b32", ds_read2<4, 64>, Ty::B64);
  read("ds_read2_b64", ds_read2<8, 1>, Ty::B128);
  read("ds_read2st64_b64", ds_read2<8, 64>, Ty::B128);
}

void register_writes(Registry& r) {
  auto write = [&](const char* name, ExecFn exec, Ty data) { r.add(ds(name, exec, Ty::None, {Ty::B32, data}, kStore)); };
  write("ds_write_b8", ds_write<1, 0>, Ty::B32);
  write("ds_write_b16", ds_write<2, 0>, Ty::B32);
  write("ds_write_b8_d16_hi", ds_write<1, 1>, Ty::B32);
  write("ds_write_b16_d16_hi", ds_write<2, 1>, Ty::B32);
  write("ds_write_b32", ds_write<4, 0>, Ty::B32);
  write("ds_write_b64", ds_write<8, 0>, Ty::B64);
  write("ds_write_b96", ds_write<12, 0>, Ty::B96);
  write("ds_write_b128", ds_write<16, 0>, Ty::B128);
  auto write2 = [&](const char* name, ExecFn exec, Ty data) { r.add(ds(name, exec, Ty::None, {Ty::B32, data, data}, kStore)); };
  write2("ds_write2_b32", ds_write2<4, 1>, Ty::B32);
  write2("ds_write2st64_b32", ds_write2<4, 64>, Ty::B32);
  write2("ds_write2_b64", ds_write2<8, 1>, Ty::B64);
  write2("ds_write2st64_b64", ds_write2<8, 64>, Ty::B64);
}

void register_lane_moves(Registry& r) {
  r.add(ds("ds_bpermute_b32", ds_bpermute_b32, Ty::B32, {Ty::B32, Ty::B32}, kLoad));
  r.add(ds("ds_permute_b32", ds_permute_b32, Ty::B32, {Ty::B32, Ty::B32}, kLoad));
  r.add(ds("ds_swizzle_b32", ds_swizzle_b32, Ty::B32, {Ty::B32}, kLoad));
  auto transposing = [&](const char* name, ExecFn exec, Ty dst) {
    Desc d = ds(name, exec, dst, {Ty::B32}, kLoad);
    d.targets = kGfx950;
    r.add(d);
  };
  transposing("ds_read_b64_tr_b16", ds_read_tr<16, 8>, Ty::B64);
  transposing("ds_read_b64_tr_b8", ds_read_tr<8, 8>, Ty::B64);
  transposing("ds_read_b64_tr_b4", ds_read_tr<4, 8>, Ty::B64);
  transposing("ds_read_b96_tr_b6", ds_read_tr<6, 12>, Ty::B96);
}

}  // namespace

void extend_narrow(LoadResult& r, int bytes, bool sign, int half) {
  const int shift = half == 2 ? 16 : 0;
  for (int l = 0; l < kLanes; ++l) {
    u32 x = r.rows[0][l];
    if (sign) x = bytes == 1 ? u32(i32(i8(x))) : u32(i32(i16(x)));
    r.rows[0][l] = x << shift;
  }
  ByteMask& u = r.undefined[0];
  if (bytes == 1) u.b[1] = sign ? u.b[0] : 0;
  u.b[2] = u.b[3] = sign ? u.b[1] : 0;
  if (half == 2) u.b[2] = u.b[0], u.b[3] = u.b[1];
  r.byte_mask = half == 0 ? 0xf : half == 1 ? 0x3 : 0xc;
}

void register_ds(Registry& r) {
  register_reads(r);
  register_writes(r);
  register_lane_moves(r);
  register_ds_atomics(r);
}

}  // namespace amdsim
