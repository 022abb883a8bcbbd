// What every matrix instruction shares: its description, the operands' way from registers to tiles and back.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "../arith/mfma.hpp"
#include "../arith/mfma_elements.hpp"
#include "mfma_layout.hpp"
#include "vop.hpp"

namespace amdsim {

using arith::Element;
using arith::Factors;

// Element types by name; fp8 and bf8 mean the target's own formats.
enum class Source : u8 { f32, xf32, f64, f16, bf16, fp8, bf8, i8, f8f6f4 };

using MatrixLines = std::vector<u8>;  // by lane or element: block * m + row, or block * n + column; below 64

struct MatrixOp {
  std::string name;
  MatrixShape shape;
  Source a, b;
  bool sparse = false, scaled = false;
  std::vector<i32> a_index, b_index, c_index;
  std::vector<i32> a_contiguous, b_contiguous;  // f8f6f4: the layout of 4- and 6-bit operands
  MatrixLines a_rows, b_columns, c_rows, c_columns;
};

// The executors of the families, bodies of Desc::exec.
void mfma_float(Wave& w, const Inst& in);
void mfma_f32(Wave& w, const Inst& in);
void mfma_f64(Wave& w, const Inst& in);
void mfma_i8(Wave& w, const Inst& in);
void mfma_f8f6f4(Wave& w, const Inst& in);
void smfmac(Wave& w, const Inst& in);

inline const MatrixOp& op_of(const Inst& in) { return *static_cast<const MatrixOp*>(in.body); }
Element element_of(Source source, bool fnuz);
arith::Grouping grouping_of(Source source);
arith::MatrixOptions options_of(const Wave& w);

// The lane that each lane's share of an operand is read from: CBSZ and ABID broadcast A, BLGP permutes B.
struct LaneMap {
  i8 from[kLanes];
};
LaneMap identity_lanes();
LaneMap a_lanes(const Inst& in);
LaneMap b_lanes(const Inst& in);

const u32* source_rows(Wave& w, const Operand& op);
u32 packed_item(const u32* rows, int lane, int item, int width);

// Calls put(index, raw) for every element of an operand.
template <class Put>
void for_each_element(const std::vector<i32>& index, const LaneMap& lanes, const u32* rows, int width, Put put) {
  const int items = static_cast<int>(index.size()) / kLanes;
  for (int item = 0; item < items; ++item)
    for (int l = 0; l < kLanes; ++l)
      put(index[static_cast<std::size_t>(item * kLanes + l)], packed_item(rows, lanes.from[l], item, width));
}

void load_factors(Factors& out, const std::vector<i32>& index, const LaneMap& lanes, const u32* rows, Element element);

struct Accumulators {
  alignas(64) float f32[4096];
  alignas(64) i32 i32s[4096];
};

template <class T>
void load_accumulators(Wave& w, const MatrixOp& op, const Operand& source, T* out) {
  const std::size_t count = op.c_index.size();
  if (source.kind == Kind::Const) {
    const T value = bits<T>(static_cast<u32>(source.value));
    for (std::size_t at = 0; at < count; ++at) out[op.c_index[at]] = value;
    return;
  }
  const u32* rows = source_rows(w, source);
  for (std::size_t at = 0; at < count; ++at) out[op.c_index[at]] = bits<T>(rows[at]);
}

template <class T>
void store_accumulators(Wave& w, const MatrixOp& op, const Inst& in, const T* values) {
  u32* rows = w.v[in.dst.reg];
  for (std::size_t at = 0; at < op.c_index.size(); ++at) rows[at] = bits<u32>(values[op.c_index[at]]);
}

// Marks the undefined elements of the result; called before it is written.
void propagate(Wave& w, const Inst& in);
void shadow_matrix(Wave& w, const Inst& in);
void name_lines(MatrixOp& op);  // fills a_rows and its kin from the layouts

struct Workspace {
  Factors a, b;
  Accumulators c;
  alignas(64) float fa[4096], fb[4096];
  alignas(64) i8 ia[4096], ib[4096];
};
Workspace& workspace();  // of the calling thread

// The tile arithmetic, block by block, on the workspace.
void multiply_blocks(const MatrixShape& s, arith::Grouping grouping, Workspace& t, const arith::BlockScales* scales,
                     arith::MatrixOptions options);

}  // namespace amdsim
