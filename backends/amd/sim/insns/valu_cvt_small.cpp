// fp8, bf8, fp6, bf6 and fp4 conversions: the plain ones of both targets and the scaled ones of gfx950.
// CDNA4 ISA 7.3: a scaled conversion to a small format divides by the scale and rounds once, one from a small format
// multiplies; FP16_OVFL=1 saturates 8-bit results, smaller ones always saturate; stochastic conversions of several
// values step the random number with V_PRNG_B32 between values.
#include <deque>
#include <string>

#include "../arith/convert.hpp"
#include "../arith/multiversion.hpp"
#include "../arith/quick_convert.hpp"
#include "../core/program.hpp"
#include "../core/shadow.hpp"
#include "vop_modes.hpp"

namespace amdsim {
namespace {

using namespace arith;

const char* interned(std::string name) {
  static std::deque<std::string> names;
  return names.emplace_back(std::move(name)).c_str();
}

struct Small {
  const char* name;
  int width;
  const FloatFormat& (*format)(bool fnuz);
};
constexpr Small kFp8Type{"fp8", 8, fp8_format}, kBf8Type{"bf8", 8, bf8_format};
constexpr Small kFp6Type{"fp6", 6, [](bool) -> const FloatFormat& { return kFp6; }};
constexpr Small kBf6Type{"bf6", 6, [](bool) -> const FloatFormat& { return kBf6; }};
constexpr Small kFp4Type{"fp4", 4, [](bool) -> const FloatFormat& { return kFp4; }};

const FloatFormat& format_in(const LaneArgs& io, const Small& type) { return type.format(io.target->fp8_fnuz); }
Overflow overflow_of(const LaneArgs& io) { return io.mode->fp16_ovfl ? Overflow::saturate : Overflow::special; }
u32 op_sel(const LaneArgs& io, int bit) { return io.in->mod.op_sel >> bit & 1; }

void put(u32& word, u32 value, u32 at, u32 width) {
  const u32 field = (width == 32 ? ~0u : (1u << width) - 1) << at;
  word = (word & ~field) | (value << at & field);
}

// ---- without scale

// All values of the target's 8-bit format, as f32 bits.
template <const Small& Type>
const u32* byte_values(const LaneArgs& io) {
  const bool fnuz = io.target->fp8_fnuz;
  if (&Type == &kFp8Type) return (fnuz ? arith::detail::kFp8FnuzTable : arith::detail::kFp8OcpTable).data();
  return (fnuz ? arith::detail::kBf8FnuzTable : arith::detail::kBf8OcpTable).data();
}
template <const Small& Type>
void widen_body(LaneArgs& io) {
  const u32* values = byte_values<Type>(io);
  for (int l = 0; l < kLanes; ++l) io.d[l] = values[io.a[l] & 0xff];
}
template <const Small& Type>
void widen_pair_body(LaneArgs& io) {
  const u32* values = byte_values<Type>(io);
  for (int l = 0; l < kLanes; ++l) {
    const u32 source = io.a[l];
    io.d[l] = values[source & 0xff];
    io.d[kLanes + l] = values[source >> 8 & 0xff];
  }
}
template <const FloatFormat& Format>
WARPWAVE_MULTIVERSION_TEMPLATE void narrow_pairs(LaneArgs& io) {
  const u32 over = overflow_byte<Format>(overflow_of(io)), at = 16 * op_sel(io, 2), keep = 0xffff0000u >> at;
  u32* d = io.d;
  const u32 *a = io.a, *b = io.b;
  WARPWAVE_INDEPENDENT
  for (int l = 0; l < kLanes; ++l) {
    const u32 pair = to_byte<Format>(bits<f32>(a[l]), over) | to_byte<Format>(bits<f32>(b[l]), over) << 8;
    d[l] = (d[l] & keep) | pair << at;
  }
}
template <const Small& Type>
void narrow_pair_body(LaneArgs& io) {
  constexpr bool fp8 = &Type == &kFp8Type;
  if (io.target->fp8_fnuz)
    narrow_pairs<fp8 ? kFp8Fnuz : kBf8Fnuz>(io);
  else
    narrow_pairs<fp8 ? kFp8Ocp : kBf8Ocp>(io);
}
template <const Small& Type>
void stochastic_body(LaneArgs& io) {
  const FloatFormat& format = format_in(io, Type);
  const u32 at = 8 * (op_sel(io, 2) + 2 * op_sel(io, 3));
  for (int l = 0; l < kLanes; ++l)
    put(io.d[l], u32(encode_stochastic(format, exact(bits<f32>(io.a[l])), io.b[l], overflow_of(io))), at, 8);
}
template <const FloatFormat& Format>
void stochastic_half_body(LaneArgs& io) {
  for (int l = 0; l < kLanes; ++l)
    put(io.d[l], u32(encode_stochastic(Format, exact(bits<f32>(io.a[l])), io.b[l], overflow_of(io))),
        16 * op_sel(io, 2), 16);
}

void shadow_half_at2(Wave& w, const Inst& in) { shadow_partial(w, in, in.mod.op_sel >> 2 & 1 ? 0xc : 0x3); }
void shadow_half_at3(Wave& w, const Inst& in) { shadow_partial(w, in, in.mod.op_sel >> 3 & 1 ? 0xc : 0x3); }
void shadow_byte_at23(Wave& w, const Inst& in) { shadow_partial(w, in, 1u << (in.mod.op_sel >> 2 & 3)); }

Desc partial(Desc d, ShadowFn shadow) {
  d.flags |= kReadsDst | kPartial;
  d.shadow = shadow;
  return d;
}

template <const Small& Type>
void unscaled(Registry& r) {
  const std::string name = Type.name;
  r.add(vop_raw(interned("v_cvt_f32_" + name), widen_body<Type>, Ty::F32, {Ty::B32}));
  r.add(vop_raw(interned("v_cvt_pk_f32_" + name), widen_pair_body<Type>, Ty::B64, {Ty::B32}));
  r.add(partial(vop_raw(interned("v_cvt_pk_" + name + "_f32"), narrow_pair_body<Type>, Ty::B32, {Ty::F32, Ty::F32}),
                shadow_half_at2));
  r.add(partial(vop_raw(interned("v_cvt_sr_" + name + "_f32"), stochastic_body<Type>, Ty::B32, {Ty::F32, Ty::B32}),
                shadow_byte_at23));
}

// ---- scaled: wide types

struct F32 {
  static constexpr const char* name = "f32";
  static constexpr int width = 32;
  static constexpr const FloatFormat& format = kF32;
};
struct F16 {
  static constexpr const char* name = "f16";
  static constexpr int width = 16;
  static constexpr const FloatFormat& format = kF16;
};
struct Bf16 {
  static constexpr const char* name = "bf16";
  static constexpr int width = 16;
  static constexpr const FloatFormat& format = kBf16;
};

// Element `index` of a lane's packed source of `width`-bit elements.
u32 element(const u32* rows, int lane, int index, int width) {
  const int bit = index * width, word = bit / 32, shift = bit % 32;
  u64 value = rows[word * kLanes + lane] >> shift;
  if (shift + width > 32) value |= u64(rows[(word + 1) * kLanes + lane]) << (32 - shift);
  return u32(value & (width == 32 ? ~0ull : (1ull << width) - 1));
}
void set_element(u32* rows, int lane, int index, int width, u32 value) {
  const int bit = index * width, word = bit / 32, shift = bit % 32;
  put(rows[word * kLanes + lane], value, u32(shift), u32(width > 32 - shift ? 32 - shift : width));
  if (shift + width > 32) put(rows[(word + 1) * kLanes + lane], value >> (32 - shift), 0, u32(shift + width - 32));
}

template <class Wide>
u32 enlarge(const LaneArgs& io, const FloatFormat& format, u32 code, u32 scale) {
  Exact value = rescaled(decode(format, code), scale);
  if (value.kind == NumberClass::nan) value.negative = false;
  return u32(encode(Wide::format, value, Rounding::nearest_even, overflow_of(io)));
}
template <class Wide>
u32 shrink(const LaneArgs& io, const FloatFormat& format, u32 code, u32 scale) {
  return u32(encode(format, descaled(decode(Wide::format, code), scale), Rounding::nearest_even, overflow_of(io)));
}
template <class Wide>
u32 shrink_stochastic(const LaneArgs& io, const FloatFormat& format, u32 code, u32 random, u32 scale) {
  return u32(encode_stochastic(format, descaled(decode(Wide::format, code), scale), random, overflow_of(io)));
}

u32 scale_of(u32 bits) { return bits >> 23 & 0xff; }

// One or two elements to the byte or half that op_sel names. fp8: two f32 sources or one packed 16-bit source; fp4
// writes a byte of two.
template <const Small& Type, class Wide>
void scaled_pair_body(LaneArgs& io) {
  const FloatFormat& format = format_in(io, Type);
  constexpr bool two_sources = Wide::width == 32;
  const u32* scales = two_sources ? io.c : io.b;
  constexpr int last = two_sources ? 3 : 2;  // fp8: the bit that selects the half
  const u32 at = Type.width == 4 ? 8 * (op_sel(io, 2) + 2 * op_sel(io, 3)) : 16 * op_sel(io, last);
  for (int l = 0; l < kLanes; ++l) {
    const u32 first = two_sources ? io.a[l] : io.a[l] & 0xffff;
    const u32 second = two_sources ? io.b[l] : io.a[l] >> 16;
    const u32 low = shrink<Wide>(io, format, first, scale_of(scales[l]));
    const u32 high = shrink<Wide>(io, format, second, scale_of(scales[l]));
    put(io.d[l], low | high << Type.width, at, 2 * Type.width);
  }
}
template <const Small& Type, class Wide>
void scaled_stochastic_body(LaneArgs& io) {  // one element to the byte that op_sel names
  const FloatFormat& format = format_in(io, Type);
  const u32 at = 8 * (op_sel(io, 2) + 2 * op_sel(io, 3));
  for (int l = 0; l < kLanes; ++l) {
    const u32 source = Wide::width == 32 ? io.a[l] : io.a[l] & 0xffff;
    put(io.d[l], shrink_stochastic<Wide>(io, format, source, io.b[l], scale_of(io.c[l])), at, 8);
  }
}
template <const Small& Type, class Wide>
void scaled_stochastic_pair_body(LaneArgs& io) {  // fp4 only
  const FloatFormat& format = format_in(io, Type);
  const u32 at = 8 * (op_sel(io, 2) + 2 * op_sel(io, 3));
  for (int l = 0; l < kLanes; ++l) {
    const u32 first = element(io.a, l, 0, Wide::width), second = element(io.a, l, 1, Wide::width);
    const u32 low = shrink_stochastic<Wide>(io, format, first, io.b[l], scale_of(io.c[l]));
    const u32 high = shrink_stochastic<Wide>(io, format, second, prng_step(io.b[l]), scale_of(io.c[l]));
    put(io.d[l], low | high << 4, at, 8);
  }
}

// Small to wide. Pairs come from the half (fp8) or byte (fp4) that op_sel names, singles from a byte.
template <const Small& Type, class Wide>
void scaled_widen_pair_body(LaneArgs& io) {
  const FloatFormat& format = format_in(io, Type);
  const u32 at = Type.width == 4 ? 8 * (op_sel(io, 0) + 2 * op_sel(io, 1)) : 16 * op_sel(io, 0);
  const u32 mask = (1u << Type.width) - 1;
  alignas(64) u32 out[2][kLanes] = {};
  for (int l = 0; l < kLanes; ++l)
    for (int i = 0; i < 2; ++i) {
      const u32 code = io.a[l] >> at >> (i * Type.width) & mask;
      set_element(out[0], l, i, Wide::width, enlarge<Wide>(io, format, code, scale_of(io.b[l])));
    }
  std::memcpy(io.d, out, sizeof(Row) * (Wide::width == 32 ? 2 : 1));
}
template <const Small& Type, class Wide>
void scaled_widen_body(LaneArgs& io) {
  const FloatFormat& format = format_in(io, Type);
  const u32 at = 8 * (op_sel(io, 0) + 2 * op_sel(io, 1));
  for (int l = 0; l < kLanes; ++l) {
    const u32 value = enlarge<Wide>(io, format, io.a[l] >> at & 0xff, scale_of(io.b[l]));
    if (Wide::width == 32)
      io.d[l] = value;
    else
      put(io.d[l], value, 16 * op_sel(io, 2), 16);  // written [byte, byte, half]
  }
}

constexpr Ty source_type(int width) { return width == 32 ? Ty::F32 : Ty::B32; }

template <const Small& Type, class Wide>
void scaled_eight(Registry& r) {
  const std::string small = Type.name, wide = Wide::name, prefix = "v_cvt_scalef32_";
  const Ty source = source_type(Wide::width), pair = Wide::width == 32 ? Ty::B64 : Ty::B32;
  const auto shrinks = Wide::width == 32 ? vop_raw(interned(prefix + "pk_" + small + "_" + wide),
                                                   scaled_pair_body<Type, Wide>, Ty::B32, {source, source, Ty::B32})
                                         : vop_raw(interned(prefix + "pk_" + small + "_" + wide),
                                                   scaled_pair_body<Type, Wide>, Ty::B32, {source, Ty::B32});
  r.add(only(kGfx950, partial(shrinks, Wide::width == 32 ? shadow_half_at3 : shadow_half_at2)));
  r.add(only(kGfx950, partial(vop_raw(interned(prefix + "sr_" + small + "_" + wide), scaled_stochastic_body<Type, Wide>,
                                      Ty::B32, {source, Ty::B32, Ty::B32}),
                              shadow_byte_at23)));
  r.add(only(kGfx950, vop_raw(interned(prefix + "pk_" + wide + "_" + small), scaled_widen_pair_body<Type, Wide>, pair,
                              {Ty::B32, Ty::B32})));
}
template <const Small& Type>
void scaled_eight_singles(Registry& r) {
  const std::string small = Type.name, prefix = "v_cvt_scalef32_";
  r.add(only(kGfx950,
             vop_raw(interned(prefix + "f32_" + small), scaled_widen_body<Type, F32>, Ty::B32, {Ty::B32, Ty::B32})));
  r.add(only(kGfx950, partial(vop_raw(interned(prefix + "f16_" + small), scaled_widen_body<Type, F16>, Ty::B32,
                                      {Ty::B32, Ty::B32}),
                              shadow_half_at2)));
}

template <class Wide>
void scaled_four(Registry& r) {
  const std::string wide = Wide::name, prefix = "v_cvt_scalef32_";
  constexpr bool single = Wide::width == 32;
  const Ty source = source_type(Wide::width), pair = single ? Ty::B64 : Ty::B32;
  const char* const shrink_name = interned(prefix + "pk_fp4_" + wide);
  const auto shrinks = single
                           ? vop_raw(shrink_name, scaled_pair_body<kFp4Type, Wide>, Ty::B32, {source, source, Ty::B32})
                           : vop_raw(shrink_name, scaled_pair_body<kFp4Type, Wide>, Ty::B32, {source, Ty::B32});
  r.add(only(kGfx950, partial(shrinks, shadow_byte_at23)));
  r.add(only(kGfx950, partial(vop_raw(interned(prefix + "sr_pk_fp4_" + wide),
                                      scaled_stochastic_pair_body<kFp4Type, Wide>, Ty::B32, {pair, Ty::B32, Ty::B32}),
                              shadow_byte_at23)));
  r.add(only(kGfx950, vop_raw(interned(prefix + "pk_" + wide + "_fp4"), scaled_widen_pair_body<kFp4Type, Wide>, pair,
                              {Ty::B32, Ty::B32})));
}

// ---- 32 six-bit elements at once: sources and results of up to 32 registers, so the rows are read from the wave.

// Lane `l` of register `r` of a source; scalars and constants are the same in every lane.
class Rows {
 public:
  Rows(const Wave& w, const Inst& in, int i) : rows_(in.src[i].kind == Kind::Vgpr ? w.v[in.src[i].reg] : splat_) {
    if (rows_ == splat_) std::fill_n(splat_, kLanes, w.s32(in.src[i]));
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  operator const u32*() const { return rows_; }

 private:
  u32 splat_[kLanes];
  const u32* rows_;
};

LaneArgs args_of(const Wave& w, const Inst& in) {
  LaneArgs io;
  io.in = &in, io.mode = &w.mode, io.target = w.program->target;
  return io;
}

void write_rows(Wave& w, const Inst& in, const u32* rows) {
  const u64 exec = w.exec();
  propagate_undefined(w, in, exec);
  for (int r = 0; r < in.dst.dwords; ++r)
    for (int l = 0; l < kLanes; ++l)
      if (exec >> l & 1) w.v[in.dst.reg + r][l] = rows[r * kLanes + l];
}

template <const Small& Type, class Wide>
void widen32(Wave& w, const Inst& in) {
  const LaneArgs io = args_of(w, in);
  const Rows a(w, in, 0), scale(w, in, 1);
  alignas(64) u32 out[32 * kLanes] = {};
  for (int l = 0; l < kLanes; ++l)
    for (int i = 0; i < 32; ++i)
      set_element(out, l, i, Wide::width,
                  enlarge<Wide>(io, format_in(io, Type), element(a, l, i, 6), scale_of(scale[l])));
  write_rows(w, in, out);
}
template <const Small& Type, class Wide>
void shrink32(Wave& w, const Inst& in) {
  const LaneArgs io = args_of(w, in);
  const Rows a(w, in, 0), scale(w, in, 1);
  alignas(64) u32 out[6 * kLanes] = {};
  for (int l = 0; l < kLanes; ++l)
    for (int i = 0; i < 32; ++i)
      set_element(out, l, i, 6,
                  shrink<Wide>(io, format_in(io, Type), element(a, l, i, Wide::width), scale_of(scale[l])));
  write_rows(w, in, out);
}
// Two sources of 16 f32, interleaved in the result.
template <const Small& Type>
void shrink_2x16(Wave& w, const Inst& in) {
  const LaneArgs io = args_of(w, in);
  const Rows a(w, in, 0), b(w, in, 1), scale(w, in, 2);
  alignas(64) u32 out[6 * kLanes] = {};
  for (int l = 0; l < kLanes; ++l)
    for (int i = 0; i < 32; ++i)
      set_element(out, l, i, 6,
                  shrink<F32>(io, format_in(io, Type), static_cast<const u32*>(i & 1 ? b : a)[i / 2 * kLanes + l],
                              scale_of(scale[l])));
  write_rows(w, in, out);
}
template <const Small& Type, class Wide>
void shrink32_stochastic(Wave& w, const Inst& in) {
  const LaneArgs io = args_of(w, in);
  const Rows a(w, in, 0), random(w, in, 1), scale(w, in, 2);
  alignas(64) u32 out[6 * kLanes] = {};
  for (int l = 0; l < kLanes; ++l) {
    u32 state = random[l];
    for (int i = 0; i < 32; ++i, state = prng_step(state))
      set_element(
          out, l, i, 6,
          shrink_stochastic<Wide>(io, format_in(io, Type), element(a, l, i, Wide::width), state, scale_of(scale[l])));
  }
  write_rows(w, in, out);
}

Desc wide_op(const std::string& name, ExecFn exec, Ty dst, std::initializer_list<Ty> src) {
  Desc d = vop_raw(interned(name), nullptr, dst, src);
  d.exec = exec;
  return only(kGfx950, d);
}

template <const Small& Type, class Wide>
void scaled_six(Registry& r) {
  const std::string small = Type.name, wide = Wide::name, prefix = "v_cvt_scalef32_";
  const Ty rows = Wide::width == 32 ? Ty::B1024 : Ty::B512;
  r.add(wide_op(prefix + "pk32_" + wide + "_" + small, widen32<Type, Wide>, rows, {Ty::B192, Ty::B32}));
  if (Wide::width == 16)
    r.add(wide_op(prefix + "pk32_" + small + "_" + wide, shrink32<Type, Wide>, Ty::B192, {rows, Ty::B32}));
  else
    r.add(wide_op(prefix + "2xpk16_" + small + "_f32", shrink_2x16<Type>, Ty::B192, {Ty::B512, Ty::B512, Ty::B32}));
  r.add(wide_op(prefix + "sr_pk32_" + small + "_" + wide, shrink32_stochastic<Type, Wide>, Ty::B192,
                {rows, Ty::B32, Ty::B32}));
}

template <class Wide>
void scaled(Registry& r) {
  scaled_eight<kFp8Type, Wide>(r);
  scaled_eight<kBf8Type, Wide>(r);
  scaled_four<Wide>(r);
  scaled_six<kFp6Type, Wide>(r);
  scaled_six<kBf6Type, Wide>(r);
}

}  // namespace

void register_valu_cvt_small(Registry& r) {
  unscaled<kFp8Type>(r);
  unscaled<kBf8Type>(r);
  r.add(only(kGfx950, partial(vop_raw("v_cvt_sr_f16_f32", stochastic_half_body<kF16>, Ty::B32, {Ty::F32, Ty::B32}),
                              shadow_half_at2)));
  r.add(only(kGfx950, partial(vop_raw("v_cvt_sr_bf16_f32", stochastic_half_body<kBf16>, Ty::B32, {Ty::F32, Ty::B32}),
                              shadow_half_at2)));
  scaled<F32>(r);
  scaled<F16>(r);
  scaled<Bf16>(r);
  scaled_eight_singles<kFp8Type>(r);
  scaled_eight_singles<kBf8Type>(r);
}

}  // namespace amdsim
