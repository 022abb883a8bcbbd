#include <pybind11/numpy.h>

#include <map>
#include <stdexcept>

#include "bind_arith.hpp"
#include "../convert.hpp"
#include "../division.hpp"
#include "../function_rows.hpp"
#include "../minmax.hpp"
#include "../transcendental.hpp"

namespace amdsim::arith {
namespace {

namespace py = pybind11;
template <class T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

template <class F>
struct NumpyOf {
  using type = F;
  static F load(F x) { return x; }
  static F store(F x) { return x; }
};
template <>
struct NumpyOf<f16> {
  using type = u16;
  static f16 load(u16 x) { return {x}; }
  static u16 store(f16 x) { return x.bits; }
};

template <class F>
using Unary = F (*)(F);
template <class F>
using Binary = F (*)(F, F);
template <class F>
using Ternary = F (*)(F, F, F);

template <class F, class Function, class... Sources>
auto apply(Function function, const Sources&... sources) {
  using N = NumpyOf<F>;
  const py::ssize_t size = std::get<0>(std::tie(sources...)).size();
  Array<typename N::type> out(size);
  for (py::ssize_t at = 0; at < size; ++at) out.mutable_data()[at] = N::store(function(N::load(sources.data()[at])...));
  return out;
}

template <class F>
void bind_family(py::module_& module, const char* suffix, const std::map<std::string, Unary<F>>& unary,
                 const std::map<std::string, Binary<F>>& binary, const std::map<std::string, Ternary<F>>& ternary) {
  using In = Array<typename NumpyOf<F>::type>;
  for (const auto& [name, function] : unary)
    module.def((name + suffix).c_str(), [f = function](const In& a) { return apply<F>(f, a); });
  for (const auto& [name, function] : binary)
    module.def((name + suffix).c_str(), [f = function](const In& a, const In& b) { return apply<F>(f, a, b); });
  for (const auto& [name, function] : ternary)
    module.def((name + suffix).c_str(),
               [f = function](const In& a, const In& b, const In& c) { return apply<F>(f, a, b, c); });
}

template <class F>
void bind_wide(py::module_& module, const char* suffix) {
  bind_family<F>(module, suffix,
                 {{"rcp", rcp},
                  {"sqrt", sqrt},
                  {"fract", fract<F>},
                  {"rndne", rndne<F>},
                  {"frexp_mant", frexp_mant<F>}},
                 {{"add", add<F>},
                  {"mul", mul<F>},
                  {"min", [](F a, F b) { return min_num(a, b, false); }},
                  {"max", [](F a, F b) { return max_num(a, b, false); }},
                  {"min_ieee", [](F a, F b) { return min_num(a, b, true); }},
                  {"max_ieee", [](F a, F b) { return max_num(a, b, true); }},
                  {"minimum", minimum<F>},
                  {"maximum", maximum<F>}},
                 {{"fma", [](F a, F b, F c) { return fma(a, b, c); }},
                  {"med3", [](F a, F b, F c) { return med3(a, b, c, true); }},
                  {"div_fixup", [](F a, F b, F c) { return div_fixup(a, b, c); }},
                  {"div_scale", [](F a, F b, F c) { return div_scale(a, b, c).value; }},
                  {"div_scale_vcc", [](F a, F b, F c) { return F(div_scale(a, b, c).vcc); }},
                  {"div_fmas", [](F a, F b, F c) { return div_fmas(a, b, c, false); }},
                  {"div_fmas_vcc", [](F a, F b, F c) { return div_fmas(a, b, c, true); }}});
  using In = Array<F>;
  const std::string tail(suffix);
  module.def(("ldexp" + tail).c_str(), [](const In& x, const Array<i32>& n) {
    In out(x.size());
    for (py::ssize_t at = 0; at < x.size(); ++at) out.mutable_data()[at] = ldexp(x.data()[at], n.data()[at]);
    return out;
  });
  module.def(("frexp_exp" + tail).c_str(), [](const In& x) {
    Array<i32> out(x.size());
    for (py::ssize_t at = 0; at < x.size(); ++at) out.mutable_data()[at] = frexp_exp(x.data()[at]);
    return out;
  });
  module.def(("to_i32" + tail).c_str(), [](const In& x) {
    Array<i32> out(x.size());
    for (py::ssize_t at = 0; at < x.size(); ++at) out.mutable_data()[at] = to_int<i32>(x.data()[at]);
    return out;
  });
  module.def(("to_u32" + tail).c_str(), [](const In& x) {
    Array<u32> out(x.size());
    for (py::ssize_t at = 0; at < x.size(); ++at) out.mutable_data()[at] = to_int<u32>(x.data()[at]);
    return out;
  });
}

template <class To>
Array<u16> narrowed(const Array<f32>& x, To convert) {
  Array<u16> out(x.size());
  for (py::ssize_t at = 0; at < x.size(); ++at) out.mutable_data()[at] = convert(x.data()[at]).bits;
  return out;
}

// A function of 64 lanes as one of a number.
template <void (*Row)(u32*, const u32*)>
f32 of_lanes(f32 x) {
  u32 row[kLanes];
  for (u32& lane : row) lane = bits<u32>(x);
  Row(row, row);
  return bits<f32>(row[kLanes - 1]);
}

void bind_half(py::module_& module) {
  module.def("f16_to_f32", [](const Array<u16>& x) {
    Array<f32> out(x.size());
    for (py::ssize_t at = 0; at < x.size(); ++at) out.mutable_data()[at] = to_f32(f16{x.data()[at]});
    return out;
  });
  module.def("f32_to_f16", [](const Array<f32>& x) { return narrowed(x, [](f32 v) { return to_f16(v); }); });
  module.def("f32_to_bf16", [](const Array<f32>& x) { return narrowed(x, [](f32 v) { return to_bf16(v); }); });
  bind_family<f16>(
      module, "_f16",
      {{"exp2", exp2}, {"log2", log2}, {"rcp", rcp}, {"sqrt", sqrt}, {"rsqrt", rsqrt}, {"sin", sin}, {"cos", cos}},
      {{"quick_add", quick_add}, {"quick_mul", quick_mul}}, {});
  const auto binary = [&module](const char* name, auto function) {
    module.def(name, [function](const Array<u16>& a, const Array<u16>& b, int rounding, bool saturate) {
      const HalfMode mode{static_cast<Rounding>(rounding), saturate ? Overflow::saturate : Overflow::special};
      return apply<f16>([&](f16 x, f16 y) { return function(x, y, mode); }, a, b);
    });
  };
  binary("add_f16", [](f16 a, f16 b, HalfMode mode) { return add(a, b, mode); });
  binary("mul_f16", [](f16 a, f16 b, HalfMode mode) { return mul(a, b, mode); });
  module.def("fma_f16", [](const Array<u16>& a, const Array<u16>& b, const Array<u16>& c, int rounding) {
    const HalfMode mode{static_cast<Rounding>(rounding), Overflow::special};
    return apply<f16>([&](f16 x, f16 y, f16 z) { return fma(x, y, z, mode); }, a, b, c);
  });
}

}  // namespace

void bind_scalars(py::module_& module) {
  bind_wide<f32>(module, "_f32");
  bind_wide<f64>(module, "_f64");
  bind_family<f32>(module, "_f32",
                   {{"exp2", exp2},
                    {"log2", of_lanes<log2_row>},
                    {"rsqrt", of_lanes<rsqrt_row>},
                    {"sin", of_lanes<sin_row>},
                    {"cos", of_lanes<cos_row>}},
                   {}, {});
  bind_family<f64>(module, "_f64", {{"rsqrt", rsqrt}}, {}, {});
  bind_half(module);
}

void bind_arith(py::module_& module) {
  py::module_ arith = module.def_submodule("arith", "Arithmetic functions, for their tests.");
  bind_mfma(arith);
  bind_formats(arith);
  bind_scalars(arith);
}

}  // namespace amdsim::arith
