#include <pybind11/numpy.h>

#include <map>
#include <stdexcept>

#include "bind_arith.hpp"
#include "../convert.hpp"

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

}  // namespace

void bind_formats(py::module_& module) {
  module.def("decode", &decode_all);
  module.def("encode", &encode_all, py::arg("format"), py::arg("values"), py::arg("rounding") = 0,
             py::arg("saturate") = false);
  module.def("encode_stochastic", &encode_stochastic_all);
}

}  // namespace amdsim::arith
