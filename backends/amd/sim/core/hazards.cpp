#include "hazards.hpp"

#include <algorithm>
#include <cstring>

#include "program.hpp"

namespace amdsim {
namespace {

bool hits(const RegRange* a, int na, const RegRange* b, int nb) {
  for (int i = 0; i < na; ++i)
    for (int j = 0; j < nb; ++j)
      if (a[i].overlaps(b[j])) return true;
  return false;
}

bool reads_of(const Inst& p, const Inst& c) { return hits(p.vwrite, p.n_vwrite, c.vread, c.n_vread); }
bool writes_of(const Inst& p, const Inst& c) { return hits(p.vwrite, p.n_vwrite, c.vwrite, c.n_vwrite); }
bool scalar_reads_of(const Inst& p, const Inst& c) { return hits(p.swrite, p.n_swrite, c.sread, c.n_sread); }

RegRange range_of(const Operand& op) { return op.kind == Kind::Vgpr ? RegRange{op.reg, op.dwords} : RegRange{}; }
bool overlaps(const RegRange& a, const RegRange& b) { return a.count && b.count && a.overlaps(b); }

bool is_valu(const Inst& i) { return i.flags & kValu && !(i.flags & kMfma); }
bool is_memory(const Inst& i) { return i.flags & (kVmem | kDs); }
bool is_smfmac(const Inst& i) { return i.flags & kMfma && i.flags & kReadsDst; }
bool writes_scalar(const Inst& i, int first, int count) {
  const RegRange r{u16(first), u16(count)};
  return std::any_of(i.swrite, i.swrite + i.n_swrite, [&](const RegRange& x) { return x.overlaps(r); });
}
bool reads_scalar(const Inst& i, int first, int count) {
  const RegRange r{u16(first), u16(count)};
  return std::any_of(i.sread, i.sread + i.n_sread, [&](const RegRange& x) { return x.overlaps(r); });
}

int pass_index(int passes) { return passes <= 2 ? 0 : passes <= 4 ? 1 : passes <= 8 ? 2 : 3; }

enum class Matrix { Xdl, Sgemm, Dgemm16, Dgemm4 };
Matrix matrix_kind(const Inst& i) {
  if (i.flags & kXdl) return Matrix::Xdl;
  if (!(i.flags & kDgemm)) return Matrix::Sgemm;
  return i.dst.dwords > 2 ? Matrix::Dgemm16 : Matrix::Dgemm4;
}

constexpr int kSgemmUse[4] = {4, 6, 10, 18}, kSgemmSrcC[4] = {2, 4, 8, 16};
constexpr int kWarSrcC[4] = {1, 3, 7, 15}, kSameC[4] = {2, 0, 0, 0};

int after_matrix_any_use(const Inst& p, const Target& t, bool memory) {
  const int i = pass_index(p.passes);
  switch (matrix_kind(p)) {
    case Matrix::Xdl: return t.xdl_extra[i];
    case Matrix::Sgemm: return kSgemmUse[i];
    case Matrix::Dgemm16: return memory ? 18 : t.dgemm16_valu;
    default: return memory ? 9 : 6;
  }
}

int after_matrix_src_c(const Inst& p, const Inst& c, const Target& t, bool identical) {
  const int i = pass_index(p.passes);
  const Matrix from = matrix_kind(p), to = matrix_kind(c);
  const bool same = identical && p.passes == c.passes;
  switch (from) {
    case Matrix::Xdl:
      if (same && to == Matrix::Xdl) return kSameC[i];
      if (to == Matrix::Xdl) return t.xdl_srcc_extra[i];
      return i == 0 ? 3 : t.xdl_srcc_extra[i];
    case Matrix::Sgemm: return same && to == Matrix::Sgemm ? kSameC[i] : to == Matrix::Xdl ? 0 : kSgemmSrcC[i];
    case Matrix::Dgemm16: return same || to == Matrix::Xdl ? 0 : t.dgemm16_srcc;
    default: return 4;
  }
}

int matrix_to_matrix(const Inst& p, const Inst& c, const Target& t, const char*& why) {
  const RegRange d = range_of(p.dst);
  int need = 0;
  auto want = [&](int states, const char* reason) {
    if (states > need) need = states, why = reason;
  };
  // SMFMAC accumulates into its destination; its third source is the index.
  const Operand& accumulator = is_smfmac(c) ? c.dst : c.src[2];
  if (overlaps(d, range_of(accumulator))) {
    const RegRange r = range_of(accumulator);
    const bool identical = r.first == d.first && r.count == d.count && !is_smfmac(c);
    want(after_matrix_src_c(p, c, t, identical), "matrix result used as SrcC");
  }
  const bool in_ab = overlaps(d, range_of(c.src[0])) || overlaps(d, range_of(c.src[1])) ||
                     (is_smfmac(c) && overlaps(d, range_of(c.src[2])));
  if (in_ab) want(after_matrix_any_use(p, t, false), "matrix result used as SrcA or SrcB");
  return need;
}

int after_matrix(const Inst& p, const Inst& c, const Target& t, const char*& why) {
  if (c.flags & kMfma) return matrix_to_matrix(p, c, t, why);
  if (is_valu(c)) {
    if (reads_of(p, c) || writes_of(p, c)) {
      why = "matrix result read or overwritten by a vector instruction";
      return after_matrix_any_use(p, t, false);
    }
    const RegRange src_c = range_of(is_smfmac(p) ? p.dst : p.src[2]);
    if (p.flags & kXdl && src_c.count && hits(&src_c, 1, c.vwrite, c.n_vwrite)) {
      why = "SrcC of a matrix instruction overwritten";
      return kWarSrcC[pass_index(p.passes)];
    }
    return 0;
  }
  if (is_memory(c) && reads_of(p, c)) {
    why = "matrix result read by a memory instruction";
    return after_matrix_any_use(p, t, true);
  }
  return 0;
}

bool starts(const Inst& i, const char* prefix) { return std::strncmp(i.desc->name, prefix, std::strlen(prefix)) == 0; }

// Results that the bypass network cannot forward: SDWA into part of the register, op_sel bits beyond the sources,
// which choose the half or byte written, and every conversion to fp4 (LLVM hasDstSelForwardingHazard).
bool writes_part(const Inst& p) {
  if (p.encoding == Encoding::Sdwa) return p.mod.dst_sel != Sel::Dword;
  if (p.narrows_to_fp4) return true;
  return p.flags & kValu && !(p.flags & kPermSwap) && p.mod.op_sel >> p.desc->n_src != 0;
}

int after_exec_write(const Inst& c, const char*& why) {
  why = "EXEC written by a vector instruction";
  if (c.encoding == Encoding::Dpp) return 5;
  if (c.flags & (kMfma | kFirstLane | kLaneSelect | kPermSwap)) return 4;
  return is_valu(c) && reads_scalar(c, sreg::kExec, 2) ? 2 : 0;
}

int after_scalar_write(const Inst& p, const Inst& c, const char*& why) {
  int need = 0;
  auto want = [&](int states, const char* reason) {
    if (states > need) need = states, why = reason;
  };
  if (scalar_reads_of(p, c)) {
    const bool lane_select = c.flags & kLaneSelect && c.src[1].kind == Kind::Sgpr;
    if (lane_select) want(4, "lane select written by a vector instruction");
    else if (is_valu(c) && !(c.flags & kCarryOut && c.flags & kMaskIn)) want(2, "scalar written by a vector instruction read as a constant");
    if (c.flags & kVmem) want(5, "scalar written by a vector instruction read by vector memory");
  }
  if (c.divides && writes_scalar(p, sreg::kVcc, 2)) want(4, "VCC written before v_div_fmas");
  for (const Operand& op : c.src) {
    if (op.kind != Kind::Special || !is_valu(c)) continue;
    if (op.reg == sreg::kVccz && writes_scalar(p, sreg::kVcc, 2)) want(5, "VCCZ read as data");
    if (op.reg == sreg::kExecz && writes_scalar(p, sreg::kExec, 2)) want(5, "EXECZ read as data");
  }
  return need;
}

int after_vector_write(const Inst& p, const Inst& c, const char*& why) {
  int need = 0;
  auto want = [&](int states, const char* reason) {
    if (states > need) need = states, why = reason;
  };
  const bool read = reads_of(p, c);
  if (read && c.flags & kMfma && !(p.flags & kDot)) want(2, "vector result read by a matrix instruction");
  if (read && c.encoding == Encoding::Dpp) want(2, "vector result read through DPP");
  // v_writelane only keeps its destination's other lanes, which the hardware interlocks.
  const bool reads_lane = c.flags & kFirstLane || (c.flags & kLaneSelect && !(c.flags & kReadsDst));
  if (read && reads_lane) want(1, "vector result read by v_readlane");
  if ((read || writes_of(p, c)) && c.flags & kPermSwap) want(2, "vector result read by v_permlane swap");
  if (read && is_valu(c) && p.flags & kTrans && !(c.flags & kTrans)) want(1, "transcendental result read");
  if (is_valu(c) && p.partial && (read || writes_of(p, c))) want(1, "partly written register used");
  if (p.flags & kDot && is_valu(c) && (read || writes_of(p, c))) {
    const bool chain = c.desc == p.desc && !overlaps(range_of(p.dst), range_of(c.src[0])) && !overlaps(range_of(p.dst), range_of(c.src[1]));
    if (!chain) want(3, "dot product result used");
  }
  return need;
}

bool wide_store(const Inst& p) {
  if (!(p.flags & kVmem) || !(p.flags & (kStore | kAtomic))) return false;
  const Operand& data = p.src[p.flags & kBuffer ? 0 : 1];
  if (data.kind != Kind::Vgpr || data.dwords < 3) return false;
  return !(p.flags & kBuffer) || p.src[3].kind != Kind::Sgpr;  // none with an SGPR offset (LLVM createsVALUHazard)
}

int after_store(const Inst& p, const Inst& c, const char*& why) {
  const RegRange data = range_of(p.src[p.flags & kBuffer ? 0 : 1]);
  if (!is_valu(c) || !hits(&data, 1, c.vwrite, c.n_vwrite)) return 0;
  why = "data of a wide store overwritten";
  return 2;
}

bool is_setreg(const Inst& i) { return starts(i, "s_setreg"); }
bool is_getreg(const Inst& i) { return starts(i, "s_getreg"); }

}  // namespace

int required_wait_states(const Inst& p, const Inst& c, const Target& t, const char*& why) {
  if (p.flags & kMfma) return after_matrix(p, c, t, why);
  if (wide_store(p)) return after_store(p, c, why);
  if (is_valu(p)) {
    const char *reason = "", *best = "";
    int need = 0;
    auto consider = [&](int states) {
      if (states > need) need = states, best = reason;
    };
    if (p.n_vwrite) consider(after_vector_write(p, c, reason));
    if (p.n_swrite) consider(after_scalar_write(p, c, reason));
    if (p.flags & kVcmpx) consider(after_exec_write(c, reason));
    why = best;
    return need;
  }
  if (p.flags & kSalu && c.flags & kReadsM0 && writes_scalar(p, sreg::kM0, 1)) {
    why = "M0 written before an instruction that reads it";
    return 1;
  }
  if (is_setreg(p) && (is_setreg(c) || is_getreg(c)) && (p.imm & 63) == (c.imm & 63)) {
    why = "hardware register written";
    return 2;
  }
  return 0;
}

namespace {

u64 bits_of(const RegRange* ranges, int count) {
  u64 set = 0;
  for (int i = 0; i < count; ++i)
    for (int r = 0; r < ranges[i].count; ++r) set |= 1ull << ((ranges[i].first + r) & 63);
  return set;
}

void derive_traits(Inst& in) {
  in.v_read_bits = bits_of(in.vread, in.n_vread), in.v_write_bits = bits_of(in.vwrite, in.n_vwrite);
  const bool carries = in.flags & kCarryOut && in.flags & kMaskIn;  // may read the carry at once
  in.s_read_bits = carries ? 0 : bits_of(in.sread, in.n_sread), in.s_write_bits = bits_of(in.swrite, in.n_swrite);
  in.divides = starts(in, "v_div_fmas");
  in.narrows_to_fp4 = starts(in, "v_cvt_scalef32_pk_fp4") || starts(in, "v_cvt_scalef32_sr_pk_fp4");
  const bool special = std::any_of(in.src, in.src + in.n_src, [](const Operand& op) { return op.kind == Kind::Special; });
  in.indirect = special || in.flags & kVcmpx || is_setreg(in) || is_getreg(in);
}

// Reading or overwriting what `p` writes, or overwriting what it still reads.
bool related(const Inst& p, const Inst& c) {
  return (p.v_write_bits & (c.v_read_bits | c.v_write_bits)) | (p.v_read_bits & c.v_write_bits) |
         (p.s_write_bits & c.s_read_bits) || p.indirect || c.indirect;
}

// Destinations of the matrix instructions that lie between a producer and its consumer: what the consumer reads there
// is theirs, and the wait states count from them (LLVM getWaitStatesSinceDef stops at the nearest definition).
class Overwritten {
 public:
  void add(const Inst& matrix) { ranges_[count_++] = range_of(matrix.dst); }
  // Is everything that matrix instruction `c` reads of `p`'s result newer than `p`?
  bool hides(const Inst& p, const Inst& c) const {
    if (count_ == 0 || !(c.flags & kMfma)) return false;
    const RegRange d = range_of(p.dst);
    for (u16 row = d.first; row < d.first + d.count; ++row) {
      const RegRange one{row, 1};
      if (hits(&one, 1, c.vread, c.n_vread) && !hits(&one, 1, ranges_, count_)) return false;
    }
    return true;
  }

 private:
  RegRange ranges_[kRing];
  int count_ = 0;
};

}  // namespace

void derive_hazards(Inst& in, const Target&) {
  derive_traits(in);
  in.partial = is_valu(in) && writes_part(in);
  in.wary = in.flags & (kMfma | kFirstLane | kLaneSelect | kPermSwap) || in.encoding == Encoding::Dpp;
  if (in.flags & kMfma) in.window = 20;
  else if (wide_store(in)) in.window = 2;
  else if (is_valu(in)) in.window = in.flags & kVcmpx ? 5 : in.n_swrite ? 5 : in.flags & kDot ? 3 : in.flags & kTrans || in.partial ? 1 : 0;
  else if (in.flags & kSalu && writes_scalar(in, sreg::kM0, 1)) in.window = 1;
  else if (is_setreg(in)) in.window = 2;
}

void search_hazards(Wave& w, const Inst& in) {
  const auto examine = [&](const HazardEvent& e, int distance) {
    const char* why = "";
    const int need = required_wait_states(*e.inst, in, *w.program->target, why);
    if (distance < need)
      w.violate(Check::Hazards, std::string(why) + ": needs " + std::to_string(need) + " wait states, has " + std::to_string(distance), 0, e.inst);
  };
  const auto keep_open = [&](const Inst& p, int distance) {
    if (distance + 1 < p.window) note_risk(w, p);
  };
  forget_risks(w);
  for (u32 n = w.ring_next; n > 0 && w.ring_next - n < kRing; --n) {
    const HazardEvent& e = w.ring[(n - 1) % kRing];
    const int distance = static_cast<int>(w.clock - e.issue) - 1;
    if (distance > 5) break;
    const Inst& p = *e.inst;
    if (p.flags & kMfma) continue;
    keep_open(p, distance);
    if ((in.wary || distance < p.window) && related(p, in)) examine(e, distance);
  }
  Overwritten newer;
  for (u32 n = w.mfma_next; n > 0 && w.mfma_next - n < kRing; --n) {
    const HazardEvent& e = w.mfma_ring[(n - 1) % kRing];
    const int distance = static_cast<int>(w.clock - e.issue) - 1;
    if (distance > 19) break;
    keep_open(*e.inst, distance);
    if ((in.wary || distance < e.inst->window) && related(*e.inst, in) && !newer.hides(*e.inst, in)) examine(e, distance);
    newer.add(*e.inst);
  }
}

}  // namespace amdsim
