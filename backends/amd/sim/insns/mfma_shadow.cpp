// Undefined values through matrix instructions: they mix lanes, so D[i, j] is undefined when any element of row i of A,
// of column j of B, or C[i, j] is; with block scales also when a scale of that row or column is. A product with an
// undefined factor counts even where the other factor is zero, which a NaN would survive.
#include <bit>

#include "mfma_op.hpp"

namespace amdsim {
namespace {

// Lanes of a register operand that hold an undefined byte.
u64 undefined_lanes(const Wave& w, const Operand& op) {
  u64 lanes = 0;
  for (int r = 0; r < op.dwords; ++r) lanes |= w.vundef[op.reg + r].any();
  return lanes;
}

// The rows (or columns) that the lanes hold, one bit each.
u64 lines_of(u64 lanes, const MatrixLines& line) {
  u64 lines = 0;
  for (; lanes != 0; lanes &= lanes - 1) lines |= 1ull << line[static_cast<std::size_t>(std::countr_zero(lanes))];
  return lines;
}

u64 through(const LaneMap& map, u64 lanes) {
  u64 out = 0;
  for (int l = 0; l < kLanes; ++l) out |= (lanes >> map.from[l] & 1) << l;
  return out;
}

u64 undefined_scales(const Wave& w, const Inst& in, int i) {
  const Operand& op = in.src[3 + i];
  const int byte = (in.mod.op_sel >> i & 1) | (in.mod.op_sel_hi >> i & 1) << 1;
  return op.kind == Kind::Vgpr ? w.vundef[op.reg].b[byte] : 0;
}

struct Lines {
  u64 rows, columns;
};

Lines undefined_lines(const Wave& w, const Inst& in, const MatrixOp& op) {
  u64 a = undefined_lanes(w, in.src[0]), b = undefined_lanes(w, in.src[1]);
  const bool permutes = !op.sparse && op.a != Source::f64 && op.a != Source::f8f6f4;  // as CBSZ and BLGP act
  if (permutes && (in.mod.cbsz | in.mod.blgp) != 0) a = through(a_lanes(in), a), b = through(b_lanes(in), b);
  if (op.sparse) a |= undefined_lanes(w, in.src[2]);  // the index says which elements a row stores
  if (op.scaled) a |= undefined_scales(w, in, 0), b |= undefined_scales(w, in, 1);
  return {lines_of(a, op.a_rows), lines_of(b, op.b_columns)};
}

}  // namespace

void name_lines(MatrixOp& op) {
  const MatrixShape& s = op.shape;
  const int lanes = padded_lanes(s.n);
  for (int l = 0; l < kLanes; ++l) {
    const int b = op.b_index[static_cast<std::size_t>(l)];
    op.a_rows.push_back(static_cast<u8>(op.a_index[static_cast<std::size_t>(l)] / s.k));
    op.b_columns.push_back(static_cast<u8>(b / (s.k * lanes) * s.n + b % lanes));
  }
  for (const i32 at : op.c_index) {
    const int row = at / lanes;
    op.c_rows.push_back(static_cast<u8>(row));
    op.c_columns.push_back(static_cast<u8>(row / s.m * s.n + at % lanes));
  }
}

void shadow_matrix(Wave& w, const Inst& in) {
  const MatrixOp& op = op_of(in);
  const Lines bad = undefined_lines(w, in, op);
  const Operand& c = op.sparse ? in.dst : in.src[2];
  const int wide = op.a == Source::f64 ? 2 : 1, items = static_cast<int>(op.c_index.size()) / kLanes;
  for (int item = 0; item < items; ++item) {
    u64 lanes = 0;
    for (int r = item * wide; c.kind == Kind::Vgpr && r < (item + 1) * wide; ++r) lanes |= w.vundef[c.reg + r].any();
    for (int l = 0; l < kLanes && (bad.rows | bad.columns) != 0; ++l) {
      const auto at = static_cast<std::size_t>(item * kLanes + l);
      lanes |= ((bad.rows >> op.c_rows[at] | bad.columns >> op.c_columns[at]) & 1) << l;
    }
    for (int r = item * wide; r < (item + 1) * wide; ++r) w.vundef[in.dst.reg + r] = {{lanes, lanes, lanes, lanes}};
  }
}

}  // namespace amdsim
