#include "mfma_op.hpp"

#include "../core/machine.hpp"
#include "../core/shadow.hpp"
#include "../core/workgroup.hpp"

namespace amdsim {
namespace {

// CBSZ/ABID: A of block ABID serves all blocks of a group of 2^CBSZ.
int a_source_lane(const Modifiers& m, int lane) {
  const int span = kLanes >> m.cbsz;
  return m.cbsz == 0 ? lane : lane % span + span * m.abid;
}
int b_source_lane(const Modifiers& m, int lane) {  // CDNA4 ISA table 29
  switch (m.blgp) {
    case 0:
      return lane;
    case 1:
      return lane % 32;
    case 2:
      return lane % 32 + 32;
    case 3:
      return (lane + 16) % 64;
    default:
      return lane % 16 + 16 * (m.blgp - 4);
  }
}

}  // namespace

Element element_of(Source source, bool fnuz) {
  switch (source) {
    case Source::f32:
      return Element::f32;
    case Source::xf32:
      return Element::xf32;
    case Source::f64:
      return Element::f64;
    case Source::f16:
      return Element::f16;
    case Source::bf16:
      return Element::bf16;
    case Source::fp8:
      return fnuz ? Element::fp8_fnuz : Element::fp8_ocp;
    case Source::bf8:
      return fnuz ? Element::bf8_fnuz : Element::bf8_ocp;
    default:
      return Element::i8;
  }
}

LaneMap identity_lanes() {
  LaneMap map;
  for (int l = 0; l < kLanes; ++l) map.from[l] = static_cast<i8>(l);
  return map;
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

void load_factors(Factors& out, const std::vector<i32>& index, const LaneMap& lanes, const u32* rows, Element element) {
  out.clear();
  for_each_element(index, lanes, rows, arith::element_bits(element),
                   [&](int at, u32 raw) { arith::set_element(out, at, element, raw); });
}

void propagate(Wave& w, const Inst& in) { propagate_undefined(w, in, kAllLanes); }

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
    case Source::bf16:
      return arith::kHalfGroups;
    case Source::xf32:
      return arith::kXf32Groups;
    default:
      return arith::kByteGroups;
  }
}

// The tile arithmetic, block by block.
void multiply_blocks(const MatrixShape& s, arith::Grouping grouping, Workspace& t, const arith::BlockScales* scales,
                     arith::MatrixOptions options) {
  const int lanes = padded_lanes(s.n);
  if (s.blocks == 1) return arith::multiply_accumulate({s.m, lanes, s.k}, grouping, t.a, t.b, scales, t.c.f32, options);
  const auto block_a = std::make_unique<Factors>(), block_b = std::make_unique<Factors>();
  for (int block = 0; block < s.blocks; ++block) {
    block_a->copy(t.a, block * s.m * s.k, 0, s.m * s.k);
    block_b->copy(t.b, block * s.k * lanes, 0, s.k * lanes);
    arith::multiply_accumulate({s.m, lanes, s.k}, grouping, *block_a, *block_b, scales, t.c.f32 + block * s.m * lanes,
                               options);
  }
}

}  // namespace amdsim
