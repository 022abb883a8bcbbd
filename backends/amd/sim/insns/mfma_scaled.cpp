// MFMA on 8-, 6- and 4-bit formats that may differ between A and B, with or without block scales (CDNA4 ISA 7.2).
#include "mfma_op.hpp"

namespace amdsim {
namespace {

// cbsz and blgp of f8f6f4 name the formats of A and B (CDNA4 ISA 7.1.6.5).
Element f8f6f4_element(Wave& w, int code) {
  static constexpr Element kFormats[] = {Element::fp8_ocp, Element::bf8_ocp, Element::fp6, Element::bf6, Element::fp4};
  if (code > 4) w.unsupported("matrix format code " + std::to_string(code));
  return kFormats[code];
}

i32 scale_exponent(u8 code) { return code == arith::kE8m0Nan ? arith::kNanScale : arith::e8m0_exponent(code); }

// Byte `select` of each lane's scale register; an inline constant is a float whose exponent field counts.
void load_scales(Wave& w, const Operand& op, int select, i32* out) {
  for (int l = 0; l < kLanes; ++l) {
    u32 word = 0;
    if (op.kind == Kind::Vgpr)
      word = w.v[op.reg][l] >> 8 * select;
    else if (op.kind == Kind::Const)
      word = static_cast<u32>(op.value) >> 23;
    else
      w.unsupported("scalar register as matrix scale");
    out[l] = scale_exponent(static_cast<u8>(word));
  }
}

}  // namespace

void mfma_f8f6f4(Wave& w, const Inst& in) {
  const MatrixOp& op = op_of(in);
  const MatrixShape& s = op.shape;
  Workspace& t = workspace();
  const auto load = [&](Factors& out, bool is_a, int code, const Operand& source) {
    const Element element = f8f6f4_element(w, code);
    const int dwords = s.m * s.k / kLanes * arith::element_bits(element) / 32;
    if (source.dwords != dwords)
      w.unsupported("matrix source of " + std::to_string(source.dwords) + " registers, its format needs " +
                    std::to_string(dwords));
    const bool bytes = arith::element_bits(element) == 8;  // these come in two runs of 16
    const std::vector<i32>& index =
        is_a ? (bytes ? op.a_index : op.a_contiguous) : (bytes ? op.b_index : op.b_contiguous);
    load_factors(out, index, identity_lanes(), source_rows(w, source), element);
  };
  load(t.a, true, in.mod.cbsz, in.src[0]);
  load(t.b, false, in.mod.blgp, in.src[1]);
  load_accumulators(w, op, in.src[2], t.c.f32);
  i32 lane_scale[2][kLanes], a_scale[kLanes], b_scale[kLanes];
  arith::BlockScales scales{a_scale, b_scale, s.k / arith::kScaleBlock};
  if (op.scaled) {
    for (int i = 0; i < 2; ++i)
      load_scales(w, in.src[3 + i], (in.mod.op_sel >> i & 1) | (in.mod.op_sel_hi >> i & 1) << 1, lane_scale[i]);
    for (int l = 0; l < kLanes; ++l) {
      a_scale[l % s.m * scales.blocks + l / s.m] = lane_scale[0][l];
      b_scale[l / s.n * s.n + l % s.n] = lane_scale[1][l];
    }
  }
  multiply_blocks(s, arith::kByteGroups, t, op.scaled ? &scales : nullptr, options_of(w));
  propagate(w, in);
  store_accumulators(w, op, in, t.c.f32);
}

}  // namespace amdsim
