// Every MFMA, SMFMAC and scaled MFMA: shape, types and passes on gfx942 and gfx950 (0: not an instruction of it).
// Passes: AMD's matrix calculator for CDNA3, CDNA4 ISA tables 28 and 33.
#include <deque>
#include <stdexcept>

#include "mfma_op.hpp"

namespace amdsim {
namespace {

Ty registers(int dwords) {
  switch (dwords) {
    case 1:
      return Ty::B32;
    case 2:
      return Ty::B64;
    case 4:
      return Ty::B128;
    case 8:
      return Ty::B256;
    case 16:
      return Ty::B512;
    case 32:
      return Ty::B1024;
    default:
      throw std::logic_error("no register type of " + std::to_string(dwords) + " dwords");
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
    case Source::f32:
      return mfma_f32;
    case Source::f64:
      return mfma_f64;
    case Source::i8:
      return mfma_i8;
    case Source::f8f6f4:
      return mfma_f8f6f4;
    default:
      return mfma_float;
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

u32 class_flags(Source a) {
  return kValu | kMfma | kIgnoresExec | (a == Source::f64 ? kDgemm : a == Source::f32 ? 0u : u32(kXdl));
}

Desc describe(const MatrixOp& op, u8 passes942, u8 passes950) {
  const MatrixShape& s = op.shape;
  const int c_dwords = s.m * s.n * s.blocks / kLanes * (op.a == Source::f64 ? 2 : 1);
  const auto operand = [&](int rows, int k) {
    return registers(k * rows * s.blocks / kLanes * source_bits(op.a) / 32);
  };
  Desc d;
  d.name = op.name.c_str();
  d.exec = executor(op);
  d.body = &op;
  d.shadow = shadow_matrix;
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

void add_op(Registry& r, const MatrixShape& shape, Source a, Source b, int passes942, int passes950,
            bool sparse = false, bool scaled = false) {
  static std::deque<MatrixOp> ops;
  MatrixOp& op = ops.emplace_back(MatrixOp{"", shape, a, b, sparse, scaled, {}, {}, {}, {}, {}, {}, {}, {}, {}});
  op.name = composed_name(op);
  op.a_index = a_layout(shape), op.b_index = b_layout(shape), op.c_index = c_layout(shape, a == Source::f64);
  name_lines(op);
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
