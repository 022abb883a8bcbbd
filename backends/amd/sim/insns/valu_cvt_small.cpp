// fp8, bf8, fp6, bf6 and fp4 conversions: the plain ones of both targets and the scaled ones of gfx950.
// CDNA4 ISA 7.3: a scaled conversion to a small format divides by the scale and rounds once, one from a small format
// multiplies; FP16_OVFL=1 saturates 8-bit results, smaller ones always saturate; stochastic conversions of several
// values step the random number with V_PRNG_B32 between values.
#include <deque>
#include <string>

#include "../arith/convert.hpp"
#include "../arith/multiversion.hpp"
#include "../arith/half_rows.hpp"
#include "../core/program.hpp"
#include "../core/shadow.hpp"
#include "small_rows.hpp"
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

const f32* as_floats(const u32* row) { return reinterpret_cast<const f32*>(row); }
SmallFormat small_in(const LaneArgs& io, const Small& type) { return small_format(format_in(io, type), overflow_of(io)); }

// `codes`, of `width` bits, to bit `at` of each word of d.
void put_rows(u32* d, const u32* codes, u32 at, u32 width) {
  const u32 field = ((1u << width) - 1) << at;
  for (int l = 0; l < kLanes; ++l) d[l] = (d[l] & ~field) | codes[l] << at;
}
void put_pairs(u32* d, const u32* low, const u32* high, u32 at, int width) {
  alignas(64) u32 pair[kLanes];
  for (int l = 0; l < kLanes; ++l) pair[l] = low[l] | high[l] << width;
  put_rows(d, pair, at, u32(2 * width));
}

template <const Small& Type>
void widen_body(LaneArgs& io) {
  const u32* values = values_of(format_in(io, Type));
  for (int l = 0; l < kLanes; ++l) io.d[l] = values[io.a[l] & 0xff];
}
template <const Small& Type>
void widen_pair_body(LaneArgs& io) {
  const u32* values = values_of(format_in(io, Type));
  for (int l = 0; l < kLanes; ++l) {
    const u32 source = io.a[l];
    io.d[l] = values[source & 0xff];
    io.d[kLanes + l] = values[source >> 8 & 0xff];
  }
}
template <const Small& Type>
void narrow_pair_body(LaneArgs& io) {
  const SmallFormat to = small_in(io, Type);
  alignas(64) u32 low[kLanes], high[kLanes];
  narrow_row(low, as_floats(io.a), to);
  narrow_row(high, as_floats(io.b), to);
  put_pairs(io.d, low, high, 16 * op_sel(io, 2), 8);
}
template <const Small& Type>
void stochastic_body(LaneArgs& io) {
  alignas(64) u32 codes[kLanes];
  narrow_row_stochastic(codes, as_floats(io.a), io.b, small_in(io, Type));
  put_rows(io.d, codes, 8 * (op_sel(io, 2) + 2 * op_sel(io, 3)), 8);
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

// Rows of one element of a packed source: of lane words, or of 64 f32.
void element_row(u32* out, const u32* rows, int index, int width) {
  for (int l = 0; l < kLanes; ++l) out[l] = element(rows, l, index, width);
}
template <class Wide>
void widened_row(f32* out, const u32* rows, int index) {
  if (Wide::width == 32)
    std::memcpy(out, rows + index * kLanes, sizeof(Row));
  else if (&Wide::format == &kF16)
    arith::widen_halves(out, rows + index / 2 * kLanes, index % 2 * 16);
  else
    for (int l = 0; l < kLanes; ++l) out[l] = arith::to_f32(bf16{u16(rows[index / 2 * kLanes + l] >> (index % 2 * 16))});
}

// Small codes to values of the wide type, times the scale. With FP16_OVFL a product beyond the type's range stays finite,
// which is for the exact conversion.
template <class Wide>
u32 enlarge(const LaneArgs& io, const FloatFormat& format, u32 code, u32 scale) {
  Exact value = rescaled(decode(format, code), scale);
  if (value.kind == NumberClass::nan) value.negative = false;
  return u32(encode(Wide::format, value, Rounding::nearest_even, overflow_of(io)));
}
template <class Wide>
void enlarge_row(u32* out, const LaneArgs& io, const FloatFormat& format, const u32* codes, const u32* scales) {
  if (io.mode->fp16_ovfl) {
    for (int l = 0; l < kLanes; ++l) out[l] = enlarge<Wide>(io, format, codes[l], scales[l] >> 23 & 0xff);
    return;
  }
  alignas(64) f32 values[kLanes];
  const u32* const table = values_of(format);
  for (int l = 0; l < kLanes; ++l) values[l] = bits<f32>(table[codes[l]]);
  scale_row(values, scales, Scaling::multiply);
  for (int l = 0; l < kLanes; ++l) values[l] = pick(values[l] != values[l], bits<f32>(0x7fc00000u), values[l]);
  if (Wide::width == 32)
    std::memcpy(out, values, sizeof values);
  else if (&Wide::format == &kF16)
    arith::narrow_to_halves(out, values);
  else
    for (int l = 0; l < kLanes; ++l) out[l] = to_bf16(values[l]).bits;
}

// Element `index` of a wide source, through the scale, as a small code; with random numbers, stochastically rounded.
template <class Wide>
void shrink_row(u32* codes, const u32* rows, int index, const u32* scales, const SmallFormat& to,
                const u32* random = nullptr) {
  alignas(64) f32 values[kLanes];
  widened_row<Wide>(values, rows, index);
  scale_row(values, scales, Scaling::divide);
  if (random)
    narrow_row_stochastic(codes, values, random, to);
  else
    narrow_row(codes, values, to);
}

// One or two elements to the byte or half that op_sel names. fp8: two f32 sources or one packed 16-bit source; fp4
// writes a byte of two.
template <const Small& Type, class Wide>
void scaled_pair_body(LaneArgs& io) {
  const SmallFormat to = small_in(io, Type);
  constexpr bool two_sources = Wide::width == 32;
  const u32* scales = two_sources ? io.c : io.b;
  constexpr int last = two_sources ? 3 : 2;  // fp8: the bit that selects the half
  alignas(64) u32 low[kLanes], high[kLanes];
  shrink_row<Wide>(low, io.a, 0, scales, to);
  shrink_row<Wide>(high, two_sources ? io.b : io.a, two_sources ? 0 : 1, scales, to);
  const u32 at = Type.width == 4 ? 8 * (op_sel(io, 2) + 2 * op_sel(io, 3)) : 16 * op_sel(io, last);
  put_pairs(io.d, low, high, at, Type.width);
}
template <const Small& Type, class Wide>
void scaled_stochastic_body(LaneArgs& io) {  // one element to the byte that op_sel names
  alignas(64) u32 codes[kLanes];
  shrink_row<Wide>(codes, io.a, 0, io.c, small_in(io, Type), io.b);
  put_rows(io.d, codes, 8 * (op_sel(io, 2) + 2 * op_sel(io, 3)), 8);
}
template <const Small& Type, class Wide>
void scaled_stochastic_pair_body(LaneArgs& io) {  // fp4 only
  const SmallFormat to = small_in(io, Type);
  alignas(64) u32 low[kLanes], high[kLanes], stepped[kLanes];
  for (int l = 0; l < kLanes; ++l) stepped[l] = prng_step(io.b[l]);
  shrink_row<Wide>(low, io.a, 0, io.c, to, io.b);
  shrink_row<Wide>(high, io.a, 1, io.c, to, stepped);
  put_pairs(io.d, low, high, 8 * (op_sel(io, 2) + 2 * op_sel(io, 3)), 4);
}

// Small to wide. Pairs come from the half (fp8) or byte (fp4) that op_sel names, singles from a byte.
template <const Small& Type, class Wide>
void scaled_widen_pair_body(LaneArgs& io) {
  const u32 at = Type.width == 4 ? 8 * (op_sel(io, 0) + 2 * op_sel(io, 1)) : 16 * op_sel(io, 0);
  const u32 mask = (1u << Type.width) - 1;
  alignas(64) u32 codes[kLanes], out[2][kLanes];
  for (u32 i = 0; i < 2; ++i) {
    for (int l = 0; l < kLanes; ++l) codes[l] = io.a[l] >> (at + i * Type.width) & mask;
    enlarge_row<Wide>(out[i], io, format_in(io, Type), codes, io.b);
  }
  if (Wide::width == 16)
    for (int l = 0; l < kLanes; ++l) out[0][l] |= out[1][l] << 16;
  std::memcpy(io.d, out, sizeof(Row) * (Wide::width == 32 ? 2 : 1));
}
template <const Small& Type, class Wide>
void scaled_widen_body(LaneArgs& io) {
  const u32 at = 8 * (op_sel(io, 0) + 2 * op_sel(io, 1));
  alignas(64) u32 codes[kLanes], out[kLanes];
  for (int l = 0; l < kLanes; ++l) codes[l] = io.a[l] >> at & 0xff;
  enlarge_row<Wide>(out, io, format_in(io, Type), codes, io.b);
  if (Wide::width == 32)
    std::memcpy(io.d, out, sizeof out);
  else
    put_rows(io.d, out, 16 * op_sel(io, 2), 16);  // written [byte, byte, half]
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

void set_element_row(u32* rows, const u32* values, int index, int width) {
  for (int l = 0; l < kLanes; ++l) set_element(rows, l, index, width, values[l]);
}

template <const Small& Type, class Wide>
void widen32(Wave& w, const Inst& in) {
  const LaneArgs io = args_of(w, in);
  const Rows a(w, in, 0), scale(w, in, 1);
  alignas(64) u32 out[32 * kLanes] = {}, row[kLanes];
  for (int i = 0; i < 32; ++i) {
    element_row(row, a, i, 6);
    enlarge_row<Wide>(row, io, format_in(io, Type), row, scale);
    set_element_row(out, row, i, Wide::width);
  }
  write_rows(w, in, out);
}
template <const Small& Type, class Wide>
void shrink32(Wave& w, const Inst& in) {
  const SmallFormat to = small_in(args_of(w, in), Type);
  const Rows a(w, in, 0), scale(w, in, 1);
  alignas(64) u32 out[6 * kLanes] = {}, row[kLanes];
  for (int i = 0; i < 32; ++i) {
    shrink_row<Wide>(row, a, i, scale, to);
    set_element_row(out, row, i, 6);
  }
  write_rows(w, in, out);
}
// Two sources of 16 f32, interleaved in the result.
template <const Small& Type>
void shrink_2x16(Wave& w, const Inst& in) {
  const SmallFormat to = small_in(args_of(w, in), Type);
  const Rows a(w, in, 0), b(w, in, 1), scale(w, in, 2);
  alignas(64) u32 out[6 * kLanes] = {}, row[kLanes];
  for (int i = 0; i < 32; ++i) {
    shrink_row<F32>(row, i & 1 ? b : a, i / 2, scale, to);
    set_element_row(out, row, i, 6);
  }
  write_rows(w, in, out);
}
template <const Small& Type, class Wide>
void shrink32_stochastic(Wave& w, const Inst& in) {
  const SmallFormat to = small_in(args_of(w, in), Type);
  const Rows a(w, in, 0), random(w, in, 1), scale(w, in, 2);
  alignas(64) u32 out[6 * kLanes] = {}, row[kLanes], state[kLanes];
  std::memcpy(state, random, sizeof state);
  for (int i = 0; i < 32; ++i) {
    shrink_row<Wide>(row, a, i, scale, to, state);
    set_element_row(out, row, i, 6);
    for (u32& s : state) s = prng_step(s);
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
