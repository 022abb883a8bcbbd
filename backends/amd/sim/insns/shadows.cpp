#include "shadows.hpp"

#include "../core/fetch.hpp"
#include "../core/shadow.hpp"

namespace amdsim {
namespace {

// One mask of 64 lanes per byte, for the rows of a register operand; scalars and constants by their shadow bits.
struct Undefined {
  u64 b[8] = {};
  u64 any() const {
    u64 all = 0;
    for (const u64 m : b) all |= m;
    return all;
  }
};

Undefined of_scalar(u64 undefined) {
  Undefined out;
  for (int byte = 0; byte < 8; ++byte) out.b[byte] = (undefined >> 8 * byte & 0xff) != 0 ? kAllLanes : 0;
  return out;
}

Undefined of_source(const Wave& w, const Operand& op) {
  if (op.kind != Kind::Vgpr) return of_scalar(op.kind == Kind::Sgpr || op.kind == Kind::Special ? w.s_undef(op) : 0);
  Undefined out;
  for (int r = 0; r < op.dwords && r < 2; ++r)
    for (int byte = 0; byte < 4; ++byte) out.b[4 * r + byte] = w.vundef[op.reg + r].b[byte];
  return out;
}

// A lane that DPP reads outside of the row or of EXEC gives 0, or is not written.
Undefined through_dpp(const Inst& in, u64 exec, const Undefined& source) {
  Undefined out;
  for (int l = 0; l < kLanes; ++l) {
    const int from = in.dpp_map[l];
    if (from < 0 || !(exec >> from & 1)) continue;
    for (int byte = 0; byte < 8; ++byte) out.b[byte] |= (source.b[byte] >> from & 1) << l;
  }
  return out;
}

// SDWA moves the selected bytes to the bottom; what lies above is 0 or the sign.
Undefined through_sdwa(const Operand& op, const Undefined& source) {
  if (op.sel == Sel::Dword) return source;
  const bool word = op.sel > Sel::Byte3;
  const int first = word ? (op.sel == Sel::Word1 ? 2 : 0) : static_cast<int>(op.sel), count = word ? 2 : 1;
  Undefined out;
  for (int byte = 0; byte < count; ++byte) out.b[byte] = source.b[first + byte];
  for (int byte = count; byte < 4 && op.sext; ++byte) out.b[byte] = out.b[count - 1];
  return out;
}

// A 16-bit source is the half that op_sel names.
Undefined half_of(const Undefined& source, bool high) {
  Undefined out;
  for (int byte = 0; byte < 2; ++byte) out.b[byte] = source.b[byte + (high ? 2 : 0)];
  return out;
}

// The state of source i as the arithmetic sees it.
Undefined of_operand(const Wave& w, const Inst& in, int i) {
  const Undefined source = of_source(w, in.src[i]);
  if (in.encoding == Encoding::Sdwa) return through_sdwa(in.src[i], source);
  const Undefined moved = in.encoding == Encoding::Dpp && i == 0 ? through_dpp(in, w.exec(), source) : source;
  const Ty type = in.desc->src[i];
  const bool half = type == Ty::B16 || type == Ty::F16 || type == Ty::BF16;
  return half ? half_of(moved, in.mod.op_sel >> i & 1) : moved;
}

// `written`: bytes of each dword of the result that reach the destination, which SDWA may shift or extend.
void write_bytes(Wave& w, const Inst& in, const Undefined& value, unsigned written) {
  const u64 exec = write_lanes(w, in);
  for (int byte = 0; byte < 4; ++byte) {
    const int origin = sdwa_origin(in, byte);
    if (origin == kKeptByte || (origin >= 0 && !(written >> origin & 1))) continue;
    for (int r = 0; r < in.dst.dwords && r < 2; ++r) {
      u64& m = w.vundef[in.dst.reg + r].b[byte];
      m = (m & ~exec) | (origin == kZeroByte ? 0 : value.b[4 * r + origin] & exec);
    }
  }
}

Undefined everywhere(u64 lanes) {
  Undefined out;
  for (u64& m : out.b) m = lanes;
  return out;
}

u64 union_of_sources(const Wave& w, const Inst& in) {
  u64 lanes = 0;
  for (int i = 0; i < in.n_src; ++i) lanes |= of_operand(w, in, i).any();
  return lanes;
}

// Masks of undefined bits of source i, one row pair of 64 lanes.
void expand(const Undefined& undefined, u32 (*rows)[kLanes]) {
  for (int r = 0; r < 2; ++r)
    for (int l = 0; l < kLanes; ++l) {
      u32 value = 0;
      for (int byte = 0; byte < 4; ++byte) value |= (undefined.b[4 * r + byte] >> l & 1 ? 0xffu : 0u) << 8 * byte;
      rows[r][l] = value;
    }
}

Undefined collapse(const u32* rows, int dwords) {
  Undefined out;
  for (int r = 0; r < dwords; ++r)
    for (int l = 0; l < kLanes; ++l)
      for (int byte = 0; byte < 4; ++byte)
        if (rows[r * kLanes + l] >> 8 * byte & 0xff) out.b[4 * r + byte] |= 1ull << l;
  return out;
}

struct Operands {
  FetchBuffer values;
  alignas(64) u32 masks[3][2][kLanes];
  const u32* value[3];

  Operands(const Wave& w, const Inst& in) {
    for (int i = 0; i < in.n_src && i < 3; ++i) {
      value[i] = fetch_lanes(w, in, i, values);
      expand(of_operand(w, in, i), masks[i]);
    }
  }
};

}  // namespace

void shadow_partial(Wave& w, const Inst& in, unsigned written) {
  write_bytes(w, in, everywhere(union_of_sources(w, in)), written);
}

void shadow_half(Wave& w, const Inst& in) {
  if (in.encoding == Encoding::Sdwa) return shadow_partial(w, in, 0xf);
  shadow_partial(w, in, in.mod.op_sel >> in.desc->n_src & 1 ? 0xc : 0x3);
}

void shadow_one_byte(Wave& w, const Inst& in, int byte) {
  const Undefined source = of_operand(w, in, 0);
  write_bytes(w, in, everywhere(source.b[byte]), 0xf);
}

void shadow_upward(Wave& w, const Inst& in) {
  Undefined out;
  for (int i = 0; i < in.n_src; ++i) {
    const Undefined source = of_operand(w, in, i);
    for (int byte = 0; byte < 8; ++byte) out.b[byte] |= source.b[byte];
  }
  for (int byte = 1; byte < 8; ++byte) out.b[byte] |= out.b[byte - 1];
  if (in.mod.clamp) out = everywhere(out.b[7]);  // saturation looks at the whole sum
  write_bytes(w, in, out, 0xf);
  const u64 exec = w.exec();
  for (int i = 0; i < in.n_swrite; ++i)
    if (in.swrite[i].count == 2) w.set_undef_pair(in.swrite[i].first, out.b[7] & exec);
}

void shadow_pair(Wave& w, const Inst& in) {
  const u64 low = of_operand(w, in, 0).any(), high = of_operand(w, in, 1).any();
  Undefined out;
  out.b[0] = out.b[1] = low, out.b[2] = out.b[3] = high;
  write_bytes(w, in, out, 0xf);
}

void shadow_pack(Wave& w, const Inst& in) {
  Undefined out = of_operand(w, in, 0);
  const Undefined high = of_operand(w, in, 1);
  for (int byte = 0; byte < 2; ++byte) out.b[2 + byte] = high.b[byte];
  write_bytes(w, in, out, 0xf);
}

void shadow_packed(Wave& w, const Inst& in) {
  Undefined out;
  for (int i = 0; i < in.n_src; ++i) {
    const Undefined source = of_operand(w, in, i);
    const u64 halves[2] = {source.b[0] | source.b[1], source.b[2] | source.b[3]};
    out.b[0] |= halves[in.mod.op_sel >> i & 1];
    out.b[2] |= halves[in.mod.op_sel_hi >> i & 1];
  }
  out.b[1] = out.b[0], out.b[3] = out.b[2];
  write_bytes(w, in, out, 0xf);
}

void shadow_moved_dwords(Wave& w, const Inst& in) {
  Undefined out;
  for (int i = 0; i < 2; ++i) {
    const Undefined source = of_operand(w, in, i);
    const int picked = in.mod.op_sel >> i & 1 ? 4 : 0;
    for (int byte = 0; byte < 4; ++byte) out.b[4 * i + byte] = source.b[picked + byte];
  }
  write_bytes(w, in, out, 0xf);
}

void shadow_packed_dwords(Wave& w, const Inst& in) {
  Undefined out;
  for (int i = 0; i < in.n_src; ++i) {
    const Undefined source = of_operand(w, in, i);
    const u64 dwords[2] = {source.b[0] | source.b[1] | source.b[2] | source.b[3],
                           source.b[4] | source.b[5] | source.b[6] | source.b[7]};
    for (int byte = 0; byte < 4; ++byte) {
      out.b[byte] |= dwords[in.mod.op_sel >> i & 1];
      out.b[4 + byte] |= dwords[in.mod.op_sel_hi >> i & 1];
    }
  }
  write_bytes(w, in, out, 0xf);
}

void shadow_select(Wave& w, const Inst& in) {
  const Operand& mask = in.src[2];
  const u64 select = mask.kind == Kind::None ? w.vcc() : w.s64(mask);
  const u64 undefined_mask = mask.kind == Kind::None ? w.undef_pair(sreg::kVcc) : w.s_undef(mask);
  const Undefined a = of_operand(w, in, 0), b = of_operand(w, in, 1);
  Undefined out;
  for (int byte = 0; byte < 8; ++byte) out.b[byte] = (a.b[byte] & ~select) | (b.b[byte] & select) | undefined_mask;
  write_bytes(w, in, out, 0xf);
}

// Masked bits travel as the data bits do: the body runs on the masks, with the control sources as they are.
void shadow_bits(Wave& w, const Inst& in, unsigned control) {
  Operands operands(w, in);
  u64 broken = 0;
  LaneArgs io;
  const u32** const slots[3] = {&io.a, &io.b, &io.c};
  for (int i = 0; i < in.n_src && i < 3; ++i) {
    const bool steers = control >> i & 1;
    if (steers) broken |= of_operand(w, in, i).any();
    *slots[i] = steers ? operands.value[i] : operands.masks[i][0];
  }
  alignas(64) u32 result[2][kLanes] = {};
  io.d = result[0], io.in = &in, io.mode = &w.mode;
  reinterpret_cast<void (*)(LaneArgs&)>(const_cast<void*>(in.body))(io);
  Undefined out = collapse(result[0], in.dst.dwords);
  for (u64& m : out.b) m |= broken;
  write_bytes(w, in, out, 0xf);
}

void shadow_move(Wave& w, const Inst& in) { write_bytes(w, in, of_operand(w, in, 0), 0xf); }

void shadow_bytewise(Wave& w, const Inst& in) {
  Undefined out;
  for (int i = 0; i < in.n_src; ++i) {
    const Undefined source = of_operand(w, in, i);
    for (int byte = 0; byte < 8; ++byte) out.b[byte] |= source.b[byte];
  }
  write_bytes(w, in, out, 0xf);
}

void shadow_bits_all(Wave& w, const Inst& in) { shadow_bits(w, in, 0); }
void shadow_bits_control0(Wave& w, const Inst& in) { shadow_bits(w, in, 1); }
void shadow_bits_control1(Wave& w, const Inst& in) { shadow_bits(w, in, 2); }
void shadow_bits_control2(Wave& w, const Inst& in) { shadow_bits(w, in, 4); }
void shadow_bits_control12(Wave& w, const Inst& in) { shadow_bits(w, in, 6); }

namespace {

// Undefined bits of a & b, and of a | b: where an undefined bit meets one that does not settle the result.
u32 undefined_and(u32 a, u32 ua, u32 b, u32 ub) { return (ua & ub) | (ua & b) | (ub & a); }
u32 undefined_or(u32 a, u32 ua, u32 b, u32 ub) { return (ua & ub) | (ua & ~b) | (ub & ~a); }

template <class LaneRule>
void by_lane(Wave& w, const Inst& in, LaneRule rule) {
  Operands o(w, in);
  alignas(64) u32 result[kLanes];
  for (int l = 0; l < kLanes; ++l) result[l] = rule(o, l);
  write_bytes(w, in, collapse(result, 1), 0xf);
}

}  // namespace

void shadow_and(Wave& w, const Inst& in) {
  by_lane(w, in, [](const Operands& o, int l) {
    return undefined_and(o.value[0][l], o.masks[0][0][l], o.value[1][l], o.masks[1][0][l]);
  });
}

void shadow_or(Wave& w, const Inst& in) {
  const bool three = in.n_src == 3;
  by_lane(w, in, [three](const Operands& o, int l) {
    const u32 a = o.value[0][l], b = o.value[1][l];
    const u32 two = undefined_or(a, o.masks[0][0][l], b, o.masks[1][0][l]);
    return three ? undefined_or(a | b, two, o.value[2][l], o.masks[2][0][l]) : two;
  });
}

void shadow_bfi(Wave& w, const Inst& in) {
  by_lane(w, in, [](const Operands& o, int l) {
    const u32 a = o.value[0][l];
    return o.masks[0][0][l] | (o.masks[1][0][l] & a) | (o.masks[2][0][l] & ~a);
  });
}

// Bytes that the selector makes 0 or 0xff are defined.
void shadow_perm(Wave& w, const Inst& in) {
  by_lane(w, in, [](const Operands& o, int l) {
    const u64 data = u64(o.masks[0][0][l]) << 32 | o.masks[1][0][l];
    u32 out = o.masks[2][0][l];
    for (int i = 0; i < 4; ++i) {
      const u32 sel = o.value[2][l] >> 8 * i & 0xff, from = sel < 8 ? sel : 2 * (sel & 3) + 1;
      if (sel < 12) out |= (data >> 8 * from & 0xff) << 8 * i;
    }
    return out;
  });
}

void shadow_and_or(Wave& w, const Inst& in) {
  by_lane(w, in, [](const Operands& o, int l) {
    const u32 a = o.value[0][l], b = o.value[1][l];
    const u32 both = undefined_and(a, o.masks[0][0][l], b, o.masks[1][0][l]);
    return undefined_or(a & b, both, o.value[2][l], o.masks[2][0][l]);
  });
}

void shadow_lshl_or(Wave& w, const Inst& in) {
  by_lane(w, in, [](const Operands& o, int l) {
    const u32 shift = o.value[1][l] & 31;
    if (o.masks[1][0][l]) return ~0u;
    return undefined_or(o.value[0][l] << shift, o.masks[0][0][l] << shift, o.value[2][l], o.masks[2][0][l]);
  });
}

}  // namespace amdsim
