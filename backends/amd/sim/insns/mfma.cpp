// Dense MFMA: register layout around the tile arithmetic of arith/mfma.hpp.
// EXEC and MODE.round are ignored; MODE.fp16_ovfl saturates; f32 sources obey MODE.denorm (CDNA4 ISA 7.1.2, 7.4).
#include "../arith/floats.hpp"
#include "../core/program.hpp"
#include "mfma_op.hpp"

namespace amdsim {
namespace {

// Columns that only pad a 4-wide tile to 16 lanes.
void clear_padding(Factors& b, const MatrixShape& s) {
  const int lanes = padded_lanes(s.n);
  if (lanes == s.n) return;
  for (int k = 0; k < s.blocks * s.k; ++k)
    for (int j = s.n; j < lanes; ++j) b.set_zero(k * lanes + j);
}

// An inline constant was read as a 32-bit operand where C is wider than a register pair: small integers are bits,
// floats are widened.
f64 f64_constant(const Operand& op) {
  const auto word = static_cast<i64>(static_cast<i32>(op.value));
  if (op.dwords == 2) return bits<f64>(op.value);
  return word >= -16 && word <= 64 ? bits<f64>(word) : f64(bits<f32>(static_cast<u32>(op.value)));
}

}  // namespace

void mfma_float(Wave& w, const Inst& in) {
  const MatrixOp& op = op_of(in);
  Workspace& t = workspace();
  const bool fnuz = w.program->target->fp8_fnuz;
  load_factors(t.a, op.a_index, a_lanes(in), source_rows(w, in.src[0]), element_of(op.a, fnuz));
  load_factors(t.b, op.b_index, b_lanes(in), source_rows(w, in.src[1]), element_of(op.b, fnuz));
  clear_padding(t.b, op.shape);
  load_accumulators(w, op, in.src[2], t.c.f32);
  multiply_blocks(op.shape, grouping_of(op.a), t, nullptr, options_of(w));
  propagate(w, in);
  store_accumulators(w, op, in, t.c.f32);
}

// f32 sources: a chain of fused multiply-adds; input subnormals obey MODE.denorm.
void mfma_f32(Wave& w, const Inst& in) {
  const MatrixOp& op = op_of(in);
  const MatrixShape& s = op.shape;
  const int lanes = padded_lanes(s.n);
  Workspace& t = workspace();
  const bool keep = w.mode.denorm32 & 1;
  const auto value = [keep](u32 raw) { return bits<float>(keep ? raw : arith::flush32(raw)); };
  std::fill_n(t.fb, s.blocks * s.k * lanes, 0.0f);
  for_each_element(op.a_index, a_lanes(in), source_rows(w, in.src[0]), 32,
                   [&](int at, u32 raw) { t.fa[at] = value(raw); });
  for_each_element(op.b_index, b_lanes(in), source_rows(w, in.src[1]), 32,
                   [&](int at, u32 raw) { t.fb[at] = value(raw); });
  load_accumulators(w, op, in.src[2], t.c.f32);
  for (int block = 0; block < s.blocks; ++block)
    arith::multiply_accumulate_f32({s.m, lanes, s.k}, t.fa + block * s.m * s.k, t.fb + block * s.k * lanes,
                                   t.c.f32 + block * s.m * lanes, options_of(w));
  propagate(w, in);
  store_accumulators(w, op, in, t.c.f32);
}

void mfma_i8(Wave& w, const Inst& in) {
  const MatrixOp& op = op_of(in);
  const MatrixShape& s = op.shape;
  const int lanes = padded_lanes(s.n);
  Workspace& t = workspace();
  std::fill_n(t.ib, s.blocks * s.k * lanes, i8{0});
  for_each_element(op.a_index, a_lanes(in), source_rows(w, in.src[0]), 8,
                   [&](int at, u32 raw) { t.ia[at] = static_cast<i8>(raw); });
  for_each_element(op.b_index, b_lanes(in), source_rows(w, in.src[1]), 8,
                   [&](int at, u32 raw) { t.ib[at] = static_cast<i8>(raw); });
  load_accumulators(w, op, in.src[2], t.c.i32s);
  for (int block = 0; block < s.blocks; ++block)
    arith::multiply_accumulate_i8({s.m, lanes, s.k}, t.ia + block * s.m * s.k, t.ib + block * s.k * lanes,
                                  t.c.i32s + block * s.m * lanes, w.mode.fp16_ovfl);
  propagate(w, in);
  store_accumulators(w, op, in, t.c.i32s);
}

// f64: BLGP negates A, B, C; CBSZ and ABID are ignored (CDNA4 ISA 7.1.6.4).
void mfma_f64(Wave& w, const Inst& in) {
  const MatrixOp& op = op_of(in);
  const MatrixShape& s = op.shape;
  const int lanes = padded_lanes(s.n), rows = static_cast<int>(op.c_index.size()) / kLanes;
  std::vector<f64> a(static_cast<std::size_t>(s.blocks * s.m * s.k)),
      b(static_cast<std::size_t>(s.blocks * s.k * lanes));
  std::vector<f64> c(static_cast<std::size_t>(s.blocks * s.m * lanes));
  const auto at = [](const u32* p, int item, int l) { return LaneType<f64>::load(p + 2 * item * kLanes, l); };
  const auto sign = [&in](int i) { return in.mod.blgp >> i & 1 ? -1.0 : 1.0; };
  const u32 *pa = source_rows(w, in.src[0]), *pb = source_rows(w, in.src[1]);
  for (int l = 0; l < kLanes; ++l) {
    a[static_cast<std::size_t>(op.a_index[static_cast<std::size_t>(l)])] = sign(0) * at(pa, 0, l);
    b[static_cast<std::size_t>(op.b_index[static_cast<std::size_t>(l)])] = sign(1) * at(pb, 0, l);
  }
  const Operand& source = in.src[2];
  for (int item = 0; item < rows; ++item)
    for (int l = 0; l < kLanes; ++l) {
      const f64 value = source.kind == Kind::Const ? f64_constant(source) : at(source_rows(w, source), item, l);
      c[static_cast<std::size_t>(op.c_index[static_cast<std::size_t>(item * kLanes + l)])] = sign(2) * value;
    }
  for (int block = 0; block < s.blocks; ++block)
    arith::multiply_accumulate_f64({s.m, lanes, s.k}, a.data() + block * s.m * s.k, b.data() + block * s.k * lanes,
                                   c.data() + block * s.m * lanes);
  propagate(w, in);
  for (int item = 0; item < rows; ++item)
    for (int l = 0; l < kLanes; ++l)
      LaneType<f64>::store(w.v[in.dst.reg + 2 * item], l,
                           c[static_cast<std::size_t>(op.c_index[static_cast<std::size_t>(item * kLanes + l)])]);
}

}  // namespace amdsim
