#include <pybind11/numpy.h>

#include <map>
#include <stdexcept>

#include "bind_arith.hpp"
#include "../convert.hpp"
#include "../quick_convert.hpp"

namespace amdsim::arith {
namespace {

namespace py = pybind11;
template <class T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

const FloatFormat& format_named(const std::string& name) {
  if (name == "f32") return kF32;
  return format_of(element_named(name));
}

Array<f64> decode_all(const std::string& format, const Array<u64>& codes) {
  Array<f64> out(codes.size());
  for (py::ssize_t at = 0; at < codes.size(); ++at)
    out.mutable_data()[at] = to_double(format_named(format), codes.data()[at]);
  return out;
}

Array<u64> encode_all(const std::string& format, const Array<f64>& values, int rounding, bool saturate) {
  Array<u64> out(values.size());
  const Overflow overflow = saturate ? Overflow::saturate : Overflow::special;
  for (py::ssize_t at = 0; at < values.size(); ++at)
    out.mutable_data()[at] = encode(format_named(format), values.data()[at], static_cast<Rounding>(rounding), overflow);
  return out;
}

Array<u64> encode_stochastic_all(const std::string& format, const Array<f64>& values, const Array<u32>& random) {
  Array<u64> out(values.size());
  for (py::ssize_t at = 0; at < values.size(); ++at)
    out.mutable_data()[at] = encode_stochastic(format_named(format), decode(kF64, bits<u64>(values.data()[at])),
                                               random.data()[at], Overflow::special);
  return out;
}

template <const FloatFormat& Format>
void bind_quick(py::module_& module, const char* name) {
  module.def(name, [](const Array<f32>& values, bool saturate) {
    const u32 over = overflow_code<Format>(saturate ? Overflow::saturate : Overflow::special);
    Array<u64> out(values.size());
    for (py::ssize_t at = 0; at < values.size(); ++at) out.mutable_data()[at] = to_small<Format>(values.data()[at], over);
    return out;
  });
}

Array<u64> half_toward_zero(const Array<f32>& values) {
  Array<u64> out(values.size());
  for (py::ssize_t at = 0; at < values.size(); ++at) out.mutable_data()[at] = to_f16_toward_zero(values.data()[at]);
  return out;
}

}  // namespace

void bind_formats(py::module_& module) {
  module.def("decode", &decode_all);
  module.def("encode", &encode_all, py::arg("format"), py::arg("values"), py::arg("rounding") = 0,
             py::arg("saturate") = false);
  module.def("encode_stochastic", &encode_stochastic_all);
  bind_quick<kFp8Ocp>(module, "quick_fp8_ocp");
  bind_quick<kBf8Ocp>(module, "quick_bf8_ocp");
  bind_quick<kFp8Fnuz>(module, "quick_fp8_fnuz");
  bind_quick<kBf8Fnuz>(module, "quick_bf8_fnuz");
  module.def("f32_to_f16_toward_zero", &half_toward_zero);
}

}  // namespace amdsim::arith
