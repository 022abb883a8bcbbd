#include "float_mode.hpp"

namespace amdsim {
namespace {

bool flushes(const Mode& mode, Ty type, int bit) {
  switch (type) {
    case Ty::F32:
    case Ty::PkF32:
      return !(mode.denorm32 >> bit & 1);
    case Ty::F16:
    case Ty::PkF16:
    case Ty::F64:
      return !(mode.denorm64 >> bit & 1);
    default:
      return false;
  }
}

void flush_rows(u32* rows, Ty type) {
  for (int l = 0; l < kLanes; ++l) switch (type) {
      case Ty::PkF32:
        rows[kLanes + l] = arith::flush32(rows[kLanes + l]);
        [[fallthrough]];
      case Ty::F32:
        rows[l] = arith::flush32(rows[l]);
        break;
      case Ty::F64:
        LaneType<u64>::store(rows, l, arith::flush64(LaneType<u64>::load(rows, l)));
        break;
      case Ty::F16:
        rows[l] = (rows[l] & 0xffff0000u) | arith::flush16(u16(rows[l]));
        break;
      default:
        rows[l] = arith::flush16(u16(rows[l])) | u32(arith::flush16(u16(rows[l] >> 16))) << 16;
        break;
    }
}

// The direction that the result's type obeys; transcendental functions and f16 results do not use the host's.
std::optional<arith::Rounding> direction(const Mode& mode, const Inst& in) {
  if (in.flags & kTrans) return std::nullopt;
  const Ty type = in.desc->dst;
  const u8 round = type == Ty::F32 || type == Ty::PkF32 ? mode.round32 : type == Ty::F64 ? mode.round64 : u8{0};
  return round ? std::optional(static_cast<arith::Rounding>(round)) : std::nullopt;
}

}  // namespace

FloatMode::FloatMode(const Mode& mode, const Inst& in, LaneArgs& io, FetchBuffer& buffer) : mode_(mode), in_(in) {
  const u32** const slots[3] = {&io.a, &io.b, &io.c};
  for (int i = 0; i < 3 && in.desc->src[i] != Ty::None; ++i) {  // an accumulator is listed last, after n_src
    if (!flushes(mode, in.desc->src[i], 0) || *slots[i] == nullptr) continue;
    u32* const copy = buffer.rows[i][0];
    if (*slots[i] != copy)
      std::memcpy(copy, *slots[i], sizeof(Row) * static_cast<std::size_t>(ty_dwords(in.desc->src[i])));
    flush_rows(copy, in.desc->src[i]);
    *slots[i] = copy;
  }
  if (const auto round = direction(mode, in)) rounding_.emplace(*round);
}

void FloatMode::finish(u32* result) const {
  if (flushes(mode_, in_.desc->dst, 1)) flush_rows(result, in_.desc->dst);
}

}  // namespace amdsim
