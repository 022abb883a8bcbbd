// SMFMAC: A stores two of every four k; a 2-bit index per stored element says which (CDNA4 ISA 7.5).
#include "../core/program.hpp"
#include "mfma_op.hpp"

namespace amdsim {
namespace {

struct SparseShape {
  int run;     // dense k per run of a lane: 8 halves or 16 bytes
  int runs;    // 2 for the double-K forms
  int groups;  // lane groups that share a row
};

// The lane's index bits, after CBSZ/ABID have picked the set.
u32 index_bits(const Inst& in, const SparseShape& sparse, bool bytes, u32 word) {
  const int set_bits = (bytes ? 16 : 8) * sparse.runs, sets = 32 / set_bits;
  const int set = in.mod.cbsz != 0 ? 0 : in.mod.abid % sets;
  return word >> (set * set_bits);
}

// dense_k[i * stored + s]: the k of stored element s of row i, elements in ascending order of their groups of four.
void sparse_positions(Wave& w, const Inst& in, const MatrixOp& op, const SparseShape& sparse, bool bytes, i32* dense_k,
                      i32* stored_at) {
  const int stored = op.shape.k / 2, per_lane = sparse.run / 2 * sparse.runs;
  for (int l = 0; l < kLanes; ++l) {
    const int row = l % op.shape.m, group = l / op.shape.m;
    const u32 index = index_bits(in, sparse, bytes, w.v[in.src[2].reg][l]);
    for (int item = 0; item < per_lane; ++item) {
      const int base = item_to_k(item / 2 * 4, group, sparse.groups, sparse.run);
      const int at = row * stored + base / 2 + item % 2;
      dense_k[at] = base + static_cast<int>(index >> (2 * item) & 3);
      stored_at[item * kLanes + l] = at;
    }
  }
}

// One row at a time: B is gathered to the k that the row stores.
void sparse_bytes(Wave& w, const MatrixOp& op, const Inst& in, const std::vector<i32>& stored_at, const i32* dense_k) {
  const int stored = op.shape.k / 2, lanes = op.shape.n;
  Workspace& t = workspace();
  const auto into = [](i8* out) { return [out](int at, u32 raw) { out[at] = static_cast<i8>(raw); }; };
  for_each_element(stored_at, identity_lanes(), source_rows(w, in.src[0]), 8, into(t.ia));
  for_each_element(op.b_index, identity_lanes(), source_rows(w, in.src[1]), 8, into(t.ib));
  load_accumulators(w, op, in.dst, t.c.i32s);
  std::vector<i8> gathered(static_cast<std::size_t>(stored * lanes));
  for (int row = 0; row < op.shape.m; ++row) {
    for (int k = 0; k < stored; ++k)
      std::copy_n(t.ib + dense_k[row * stored + k] * lanes, lanes, gathered.data() + k * lanes);
    arith::multiply_accumulate_i8({1, lanes, stored}, t.ia + row * stored, gathered.data(), t.c.i32s + row * lanes,
                                  w.mode.fp16_ovfl);
  }
  propagate(w, in);
  store_accumulators(w, op, in, t.c.i32s);
}

void sparse_floats(Wave& w, const MatrixOp& op, const Inst& in, const std::vector<i32>& stored_at, const i32* dense_k) {
  const int stored = op.shape.k / 2, lanes = op.shape.n;
  const bool fnuz = w.program->target->fp8_fnuz;
  Workspace& t = workspace();
  load_factors(t.a, stored_at, identity_lanes(), source_rows(w, in.src[0]), element_of(op.a, fnuz));
  load_factors(t.b, op.b_index, identity_lanes(), source_rows(w, in.src[1]), element_of(op.b, fnuz));
  load_accumulators(w, op, in.dst, t.c.f32);
  const auto row_a = std::make_unique<Factors>(), row_b = std::make_unique<Factors>();
  for (int row = 0; row < op.shape.m; ++row) {
    row_a->copy(t.a, row * stored, 0, stored);
    for (int k = 0; k < stored; ++k) row_b->copy(t.b, dense_k[row * stored + k] * lanes, k * lanes, lanes);
    arith::multiply_accumulate({1, lanes, stored}, grouping_of(op.a), *row_a, *row_b, nullptr, t.c.f32 + row * lanes,
                               options_of(w));
  }
  propagate(w, in);
  store_accumulators(w, op, in, t.c.f32);
}

}  // namespace

void smfmac(Wave& w, const Inst& in) {
  const MatrixOp& op = op_of(in);
  const bool bytes = op.a != Source::f16 && op.a != Source::bf16;
  const int run = bytes ? 16 : 8, groups = kLanes / op.shape.m;
  const SparseShape sparse{run, op.shape.k / (run * groups), groups};
  std::vector<i32> dense_k(static_cast<std::size_t>(op.shape.m * op.shape.k / 2)), stored_at(dense_k.size());
  sparse_positions(w, in, op, sparse, bytes, dense_k.data(), stored_at.data());
  if (op.a == Source::i8)
    sparse_bytes(w, op, in, stored_at, dense_k.data());
  else
    sparse_floats(w, op, in, stored_at, dense_k.data());
}

}  // namespace amdsim
