// MFMA, SMFMAC and block-scaled MFMA: register layout around the tile arithmetic of arith/mfma.hpp.
// EXEC and MODE.round are ignored; MODE.fp16_ovfl saturates; f32 sources obey MODE.denorm (CDNA4 ISA 7.1.2, 7.4).
#include "../arith/mfma.hpp"

#include <deque>
#include <memory>
#include <string>

#include "../arith/floats.hpp"
#include "../arith/mfma_elements.hpp"
#include "../core/machine.hpp"
#include "../core/shadow.hpp"
#include "../core/workgroup.hpp"
#include "mfma_layout.hpp"
#include "vop.hpp"

namespace amdsim {
namespace {

using arith::Element;
using arith::Factors;

// Element types by name; fp8 and bf8 mean the target's own formats.
enum class Source : u8 { f32, xf32, f64, f16, bf16, fp8, bf8, i8, f8f6f4 };

struct MatrixOp {
  std::string name;
  MatrixShape shape;
  Source a, b;
  bool sparse = false, scaled = false;
  std::vector<i32> a_index, b_index, c_index;
  std::vector<i32> a_contiguous, b_contiguous;  // f8f6f4: the layout of 4- and 6-bit operands
};

Element element_of(Source source, bool fnuz) {
  switch (source) {
    case Source::f32: return Element::f32;
    case Source::xf32: return Element::xf32;
    case Source::f64: return Element::f64;
    case Source::f16: return Element::f16;
    case Source::bf16: return Element::bf16;
    case Source::fp8: return fnuz ? Element::fp8_fnuz : Element::fp8_ocp;
    case Source::bf8: return fnuz ? Element::bf8_fnuz : Element::bf8_ocp;
    default: return Element::i8;
  }
}

// cbsz and blgp of f8f6f4 name the formats of A and B (CDNA4 ISA 7.1.6.5).
Element f8f6f4_element(Wave& w, int code) {
  static constexpr Element kFormats[] = {Element::fp8_ocp, Element::bf8_ocp, Element::fp6, Element::bf6, Element::fp4};
  if (code > 4) w.unsupported("matrix format code " + std::to_string(code));
  return kFormats[code];
}

// ---- lanes that an operand is read from

// CBSZ/ABID: A of block ABID serves all blocks of a group of 2^CBSZ.
int a_source_lane(const Modifiers& m, int lane) {
  const int span = kLanes >> m.cbsz;
  return m.cbsz == 0 ? lane : lane % span + span * m.abid;
}
int b_source_lane(const Modifiers& m, int lane) {  // CDNA4 ISA table 29
  switch (m.blgp) {
    case 0: return lane;
    case 1: return lane % 32;
    case 2: return lane % 32 + 32;
    case 3: return (lane + 16) % 64;
    default: return lane % 16 + 16 * (m.blgp - 4);
  }
}

struct LaneMap {
  i8 from[kLanes];
};
LaneMap identity_lanes() {
  LaneMap map;
  for (int l = 0; l < kLanes; ++l) map.from[l] = static_cast<i8>(l);
  return map;
}

// ---- register rows -> elements

const u32* source_rows(Wave& w, const Operand& op) {
  if (op.kind != Kind::Vgpr) w.unsupported("matrix source that is not a vector register");
  return w.v[op.reg];
}

u32 packed_item(const u32* rows, int lane, int item, int width) {
  const int bit = item * width, word = bit / 32, shift = bit % 32;
  u64 value = rows[word * kLanes + lane];
  if (shift + width > 32) value |= u64(rows[(word + 1) * kLanes + lane]) << 32;
  return static_cast<u32>(value >> shift & ((1ull << width) - 1));
}

// Calls put(index, raw) for every element of an operand.
template <class Put>
void for_each_element(const std::vector<i32>& index, const LaneMap& lanes, const u32* rows, int width, Put put) {
  const int items = static_cast<int>(index.size()) / kLanes;
  for (int item = 0; item < items; ++item)
    for (int l = 0; l < kLanes; ++l)
      put(index[static_cast<std::size_t>(item * kLanes + l)], packed_item(rows, lanes.from[l], item, width));
}

void load_factors(Factors& out, const std::vector<i32>& index, const LaneMap& lanes, const u32* rows, Element element) {
  out.clear();
  for_each_element(index, lanes, rows, arith::element_bits(element),
                   [&](int at, u32 raw) { arith::set_element(out, at, element, raw); });
}

// Columns that only pad a 4-wide tile to 16 lanes.
void clear_padding(Factors& b, const MatrixShape& s) {
  const int lanes = padded_lanes(s.n);
  if (lanes == s.n) return;
  for (int k = 0; k < s.blocks * s.k; ++k)
    for (int j = s.n; j < lanes; ++j) b.set_zero(k * lanes + j);
}

// ---- accumulators

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

// ---- undefined inputs: any undefined source element may reach every output of its row or column; the whole result is
// marked, as a compiler never feeds a matrix instruction values that it does not mean to use.
void propagate(Wave& w, const Inst& in) { propagate_undefined(w, in, kAllLanes); }

struct Workspace {
  Factors a, b;
  Accumulators c;
  alignas(64) float fa[4096], fb[4096];
  alignas(64) i8 ia[4096], ib[4096];
};
Workspace& workspace() {
  thread_local const auto space = std::make_unique<Workspace>();
  return *space;
}

arith::MatrixOptions options_of(const Wave& w) {
  arith::MatrixOptions options;
  if (w.group->launch->config->sequential_accumulate) options.rule = arith::Accumulate::sequential_rne;
  options.saturate = w.mode.fp16_ovfl;
  return options;
}

arith::Grouping grouping_of(Source source) {
  switch (source) {
    case Source::f16:
    case Source::bf16: return arith::kHalfGroups;
    case Source::xf32: return arith::kXf32Groups;
    default: return arith::kByteGroups;
  }
}

LaneMap a_lanes(const Inst& in) {
  LaneMap map;
  for (int l = 0; l < kLanes; ++l) map.from[l] = static_cast<i8>(a_source_lane(in.mod, l));
  return map;
}
LaneMap b_lanes(const Inst& in) {
  LaneMap map;
  for (int l = 0; l < kLanes; ++l) map.from[l] = static_cast<i8>(b_source_lane(in.mod, l));
  return map;
}

const MatrixOp& op_of(const Inst& in) { return *static_cast<const MatrixOp*>(in.body); }

// The tile arithmetic, block by block.
void multiply_blocks(const MatrixShape& s, arith::Grouping grouping, Workspace& t, const arith::BlockScales* scales,
                     arith::MatrixOptions options) {
  const int lanes = padded_lanes(s.n);
  if (s.blocks == 1) return arith::multiply_accumulate({s.m, lanes, s.k}, grouping, t.a, t.b, scales, t.c.f32, options);
  const auto block_a = std::make_unique<Factors>(), block_b = std::make_unique<Factors>();
  for (int block = 0; block < s.blocks; ++block) {
    block_a->copy(t.a, block * s.m * s.k, 0, s.m * s.k);
    block_b->copy(t.b, block * s.k * lanes, 0, s.k * lanes);
    arith::multiply_accumulate({s.m, lanes, s.k}, grouping, *block_a, *block_b, scales, t.c.f32 + block * s.m * lanes, options);
  }
}

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
  for_each_element(op.a_index, a_lanes(in), source_rows(w, in.src[0]), 32, [&](int at, u32 raw) { t.fa[at] = value(raw); });
  for_each_element(op.b_index, b_lanes(in), source_rows(w, in.src[1]), 32, [&](int at, u32 raw) { t.fb[at] = value(raw); });
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
  for_each_element(op.a_index, a_lanes(in), source_rows(w, in.src[0]), 8, [&](int at, u32 raw) { t.ia[at] = static_cast<i8>(raw); });
  for_each_element(op.b_index, b_lanes(in), source_rows(w, in.src[1]), 8, [&](int at, u32 raw) { t.ib[at] = static_cast<i8>(raw); });
  load_accumulators(w, op, in.src[2], t.c.i32s);
  for (int block = 0; block < s.blocks; ++block)
    arith::multiply_accumulate_i8({s.m, lanes, s.k}, t.ia + block * s.m * s.k, t.ib + block * s.k * lanes,
                                  t.c.i32s + block * s.m * lanes, w.mode.fp16_ovfl);
  propagate(w, in);
  store_accumulators(w, op, in, t.c.i32s);
}

// An inline constant was read as a 32-bit operand where C is wider than a register pair: small integers are bits,
// floats are widened.
f64 f64_constant(const Operand& op) {
  const auto word = static_cast<i64>(static_cast<i32>(op.value));
  if (op.dwords == 2) return bits<f64>(op.value);
  return word >= -16 && word <= 64 ? bits<f64>(word) : f64(bits<f32>(static_cast<u32>(op.value)));
}

// f64: BLGP negates A, B, C; CBSZ and ABID are ignored (CDNA4 ISA 7.1.6.4).
void mfma_f64(Wave& w, const Inst& in) {
  const MatrixOp& op = op_of(in);
  const MatrixShape& s = op.shape;
  const int lanes = padded_lanes(s.n), rows = static_cast<int>(op.c_index.size()) / kLanes;
  std::vector<f64> a(static_cast<std::size_t>(s.blocks * s.m * s.k)), b(static_cast<std::size_t>(s.blocks * s.k * lanes));
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
      LaneType<f64>::store(w.v[in.dst.reg + 2 * item], l, c[static_cast<std::size_t>(op.c_index[static_cast<std::size_t>(item * kLanes + l)])]);
}

// ---- f8f6f4, with or without scales

i32 scale_exponent(u8 code) { return code == arith::kE8m0Nan ? arith::kNanScale : arith::e8m0_exponent(code); }

// Byte `select` of each lane's scale register; an inline constant is a float whose exponent field counts.
void load_scales(Wave& w, const Operand& op, int select, i32* out) {
  for (int l = 0; l < kLanes; ++l) {
    u32 word = 0;
    if (op.kind == Kind::Vgpr) word = w.v[op.reg][l] >> 8 * select;
    else if (op.kind == Kind::Const) word = static_cast<u32>(op.value) >> 23;
    else w.unsupported("scalar register as matrix scale");
    out[l] = scale_exponent(static_cast<u8>(word));
  }
}

void mfma_f8f6f4(Wave& w, const Inst& in) {
  const MatrixOp& op = op_of(in);
  const MatrixShape& s = op.shape;
  Workspace& t = workspace();
  const auto load = [&](Factors& out, bool is_a, int code, const Operand& source) {
    const Element element = f8f6f4_element(w, code);
    const int dwords = s.m * s.k / kLanes * arith::element_bits(element) / 32;
    if (source.dwords != dwords) w.unsupported("matrix source of " + std::to_string(source.dwords) + " registers, its format needs " + std::to_string(dwords));
    const bool bytes = arith::element_bits(element) == 8;  // these come in two runs of 16
    const std::vector<i32>& index = is_a ? (bytes ? op.a_index : op.a_contiguous) : (bytes ? op.b_index : op.b_contiguous);
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

// ---- SMFMAC: A stores two of every four k; a 2-bit index per stored element says which (CDNA4 ISA 7.5).

struct SparseShape {
  int run;      // dense k per run of a lane: 8 halves or 16 bytes
  int runs;     // 2 for the double-K forms
  int groups;   // lane groups that share a row
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

void smfmac(Wave& w, const Inst& in) {
  const MatrixOp& op = op_of(in);
  const bool bytes = op.a != Source::f16 && op.a != Source::bf16;
  const int run = bytes ? 16 : 8, groups = kLanes / op.shape.m;
  const SparseShape sparse{run, op.shape.k / (run * groups), groups};
  std::vector<i32> dense_k(static_cast<std::size_t>(op.shape.m * op.shape.k / 2)), stored_at(dense_k.size());
  sparse_positions(w, in, op, sparse, bytes, dense_k.data(), stored_at.data());
  if (op.a == Source::i8) sparse_bytes(w, op, in, stored_at, dense_k.data());
  else sparse_floats(w, op, in, stored_at, dense_k.data());
}

// ---- the table

Ty registers(int dwords) {
  switch (dwords) {
    case 1: return Ty::B32;
    case 2: return Ty::B64;
    case 4: return Ty::B128;
    case 8: return Ty::B256;
    case 16: return Ty::B512;
    case 32: return Ty::B1024;
    default: throw std::logic_error("no register type of " + std::to_string(dwords) + " dwords");
  }
}

const char* source_name(Source s) {
  static constexpr const char* kNames[] = {"f32", "xf32", "f64", "f16", "bf16", "fp8", "bf8", "i8", "f8f6f4"};
  return kNames[static_cast<int>(s)];
}
int source_bits(Source s) {
  static constexpr int kBits[] = {32, 32, 64, 16, 16, 8, 8, 8, 8};
  return kBits[static_cast<int>(s)];
}

ExecFn executor(const MatrixOp& op) {
  if (op.sparse) return smfmac;
  switch (op.a) {
    case Source::f32: return mfma_f32;
    case Source::f64: return mfma_f64;
    case Source::i8: return mfma_i8;
    case Source::f8f6f4: return mfma_f8f6f4;
    default: return mfma_float;
  }
}

std::string composed_name(const MatrixOp& op) {
  const MatrixShape& s = op.shape;
  const char* result = op.a == Source::i8 ? "i32" : op.a == Source::f64 ? "f64" : "f32";
  std::string name = op.sparse ? "v_smfmac_" : op.scaled ? "v_mfma_scale_" : "v_mfma_";
  name += std::string(result) + "_" + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k);
  if (s.blocks > 1) name += "_" + std::to_string(s.blocks) + "b";
  name += std::string("_") + source_name(op.a);
  if (op.a == Source::fp8 || op.a == Source::bf8) name += std::string("_") + source_name(op.b);
  return name;
}

u32 class_flags(Source a) { return kValu | kMfma | kIgnoresExec | (a == Source::f64 ? kDgemm : a == Source::f32 ? 0u : u32(kXdl)); }

Desc describe(const MatrixOp& op, u8 passes942, u8 passes950) {
  const MatrixShape& s = op.shape;
  const int c_dwords = s.m * s.n * s.blocks / kLanes * (op.a == Source::f64 ? 2 : 1);
  const auto operand = [&](int rows, int k) { return registers(k * rows * s.blocks / kLanes * source_bits(op.a) / 32); };
  Desc d;
  d.name = op.name.c_str();
  d.exec = executor(op);
  d.body = &op;
  d.dst = registers(c_dwords);
  d.n_src = op.scaled ? 5 : 3;
  d.src[0] = op.a == Source::f8f6f4 ? Ty::Any : operand(s.m, op.sparse ? s.k / 2 : s.k);
  d.src[1] = op.a == Source::f8f6f4 ? Ty::Any : operand(s.n, s.k);
  d.src[2] = op.sparse ? Ty::B32 : d.dst;
  d.src[3] = d.src[4] = op.scaled ? Ty::B32 : Ty::None;
  d.flags = class_flags(op.a) | (op.sparse ? u32(kReadsDst) : 0u);
  d.passes[0] = passes942, d.passes[1] = passes950;
  d.targets = static_cast<u8>((passes942 ? kGfx942 : 0) | (passes950 ? kGfx950 : 0));
  d.aux = op.a == Source::f8f6f4 ? kHalvesForSmallFormats : 0;
  return d;
}

void add_op(Registry& r, const MatrixShape& shape, Source a, Source b, int passes942, int passes950, bool sparse = false,
            bool scaled = false) {
  static std::deque<MatrixOp> ops;
  MatrixOp& op = ops.emplace_back(MatrixOp{"", shape, a, b, sparse, scaled, {}, {}, {}, {}, {}});
  op.name = composed_name(op);
  op.a_index = a_layout(shape), op.b_index = b_layout(shape), op.c_index = c_layout(shape, a == Source::f64);
  if (a == Source::f8f6f4) {
    MatrixShape contiguous = shape;
    contiguous.run = 0;
    op.a_contiguous = a_layout(contiguous), op.b_contiguous = b_layout(contiguous);
  }
  r.add(describe(op, static_cast<u8>(passes942), static_cast<u8>(passes950)));
}

void dense(Registry& r) {
  const auto same = [&r](MatrixShape s, Source t, int p942, int p950) { add_op(r, s, t, t, p942, p950); };
  for (const Source t : {Source::f32, Source::f16, Source::bf16, Source::i8}) {
    const int k = t == Source::f32 ? 1 : 4;
    same({32, 32, k, 2, 0}, t, 16, 16);
    same({16, 16, k, 4, 0}, t, 8, 8);
    same({4, 4, k, 16, 0}, t, 2, 2);
  }
  same({32, 32, 2, 1, 0}, Source::f32, 16, 16);
  same({16, 16, 4, 1, 0}, Source::f32, 8, 8);
  for (const Source t : {Source::f16, Source::bf16}) {
    same({32, 32, 8, 1, 0}, t, 8, 8);
    same({16, 16, 16, 1, 0}, t, 4, 4);
    same({32, 32, 16, 1, 0}, t, 0, 8);
    same({16, 16, 32, 1, 0}, t, 0, 4);
  }
  same({32, 32, 16, 1, 0}, Source::i8, 8, 8);
  same({16, 16, 32, 1, 0}, Source::i8, 4, 4);
  same({32, 32, 32, 1, 0}, Source::i8, 0, 8);
  same({16, 16, 64, 1, 0}, Source::i8, 0, 4);
  same({32, 32, 4, 1, 0}, Source::xf32, 8, 0);
  same({16, 16, 8, 1, 0}, Source::xf32, 4, 0);
  same({16, 16, 4, 1, 0}, Source::f64, 8, 16);
  same({4, 4, 4, 4, 0}, Source::f64, 4, 4);
  for (const Source a : {Source::fp8, Source::bf8})
    for (const Source b : {Source::fp8, Source::bf8}) {
      add_op(r, {32, 32, 16, 1, 0}, a, b, 8, 8);
      add_op(r, {16, 16, 32, 1, 0}, a, b, 4, 4);
    }
  for (const bool scaled : {false, true}) {
    add_op(r, {16, 16, 128, 1, 16}, Source::f8f6f4, Source::f8f6f4, 0, 8, false, scaled);
    add_op(r, {32, 32, 64, 1, 16}, Source::f8f6f4, Source::f8f6f4, 0, 16, false, scaled);
  }
}

void sparse(Registry& r) {
  for (const Source t : {Source::f16, Source::bf16}) {
    add_op(r, {32, 32, 16, 1, 8}, t, t, 8, 8, true);
    add_op(r, {16, 16, 32, 1, 8}, t, t, 4, 4, true);
    add_op(r, {32, 32, 32, 1, 8}, t, t, 0, 8, true);
    add_op(r, {16, 16, 64, 1, 8}, t, t, 0, 4, true);
  }
  const auto bytes = [&r](Source a, Source b) {
    add_op(r, {32, 32, 32, 1, 16}, a, b, 8, 8, true);
    add_op(r, {16, 16, 64, 1, 16}, a, b, 4, 4, true);
    add_op(r, {32, 32, 64, 1, 16}, a, b, 0, 8, true);
    add_op(r, {16, 16, 128, 1, 16}, a, b, 0, 4, true);
  };
  bytes(Source::i8, Source::i8);
  for (const Source a : {Source::fp8, Source::bf8})
    for (const Source b : {Source::fp8, Source::bf8}) bytes(a, b);
}

}  // namespace

void register_mfma(Registry& r) {
  dense(r);
  sparse(r);
}

}  // namespace amdsim
