#include <pybind11/numpy.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "bind_arith.hpp"
#include "../mfma.hpp"
#include "../mfma_elements.hpp"

namespace amdsim::arith {
namespace {

namespace py = pybind11;
using Words = py::array_t<std::uint32_t, py::array::c_style | py::array::forcecast>;
using Longs = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

Grouping grouping_of(Element element) {
  switch (element) {
    case Element::f16:
    case Element::bf16:
      return kHalfGroups;
    case Element::xf32:
      return kXf32Groups;
    default:
      return kByteGroups;
  }
}

Accumulate accumulate_named(const std::string& rule) {
  if (rule == "cdna3") return Accumulate::cdna3;
  if (rule == "sequential-rne") return Accumulate::sequential_rne;
  throw std::invalid_argument("unknown accumulate rule " + rule);
}

int padded(py::ssize_t lanes) { return (static_cast<int>(lanes) + 15) / 16 * 16; }

// A (rows, depth), B (depth, lanes) of raw element codes, C (rows, lanes) of f32 bits; one tile.
Words multiply(const std::string& a_name, const std::string& b_name, const Words& a, const Words& b, const Words& c,
               const std::string& rule, bool saturate, const py::object& a_scale, const py::object& b_scale) {
  const Element a_element = element_named(a_name);
  const Element b_element = element_named(b_name);
  const int rows = static_cast<int>(a.shape(0)), depth = static_cast<int>(a.shape(1));
  const int columns = static_cast<int>(b.shape(1)), lanes = padded(columns);
  if (rows * depth > kMaxFactors || depth * lanes > kMaxFactors || lanes > 128)
    throw std::invalid_argument("tile too large");
  auto left = std::make_unique<Factors>();
  auto right = std::make_unique<Factors>();
  for (int at = 0; at < rows * depth; ++at) set_element(*left, at, a_element, a.data()[at]);
  for (int k = 0; k < depth; ++k)
    for (int j = 0; j < lanes; ++j) {
      if (j < columns)
        set_element(*right, k * lanes + j, b_element, b.at(k, j));
      else
        right->set_zero(k * lanes + j);
    }
  std::vector<float> sums(rows * lanes, 0.0f);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) sums[i * lanes + j] = std::bit_cast<float>(c.at(i, j));
  std::vector<std::int32_t> a_exponents, b_exponents;
  BlockScales scales{nullptr, nullptr, depth / kScaleBlock};
  if (!a_scale.is_none()) {
    const auto exponent = [](std::uint32_t code) { return code == kE8m0Nan ? kNanScale : e8m0_exponent(code); };
    const Words left_codes = a_scale.cast<Words>(), right_codes = b_scale.cast<Words>();
    for (py::ssize_t at = 0; at < left_codes.size(); ++at) a_exponents.push_back(exponent(left_codes.data()[at]));
    b_exponents.assign(scales.blocks * lanes, 0);
    for (int block = 0; block < scales.blocks; ++block)
      for (int j = 0; j < columns; ++j) b_exponents[block * lanes + j] = exponent(right_codes.at(block, j));
    scales.a = a_exponents.data();
    scales.b = b_exponents.data();
  }
  const MatrixOptions options{accumulate_named(rule), saturate};
  multiply_accumulate({rows, lanes, depth}, grouping_of(a_element), *left, *right,
                      scales.a == nullptr ? nullptr : &scales, sums.data(), options);
  Words out({rows, columns});
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) out.mutable_at(i, j) = std::bit_cast<std::uint32_t>(sums[i * lanes + j]);
  return out;
}

// Tiles stacked along the first axis, plain f32 or f64 chains; C is overwritten by D and returned.
template <typename Float, void Chain(const TileShape&, const Float*, const Float*, Float*)>
py::array_t<Float> chain(const py::array_t<Float>& a, const py::array_t<Float>& b, const py::array_t<Float>& c) {
  const int rows = static_cast<int>(a.shape(0)), depth = static_cast<int>(a.shape(1));
  const int lanes = static_cast<int>(b.shape(1));
  py::array_t<Float> out({rows, lanes});
  std::copy_n(c.data(), rows * lanes, out.mutable_data());
  Chain({rows, lanes, depth}, a.data(), b.data(), out.mutable_data());
  return out;
}

void chain_f32(const TileShape& shape, const float* a, const float* b, float* sums) {
  multiply_accumulate_f32(shape, a, b, sums, {});
}

py::array_t<std::int32_t> chain_i8(const py::array_t<std::int8_t>& a, const py::array_t<std::int8_t>& b,
                                   const py::array_t<std::int32_t>& c, bool saturate) {
  const int rows = static_cast<int>(a.shape(0)), depth = static_cast<int>(a.shape(1));
  const int lanes = static_cast<int>(b.shape(1));
  py::array_t<std::int32_t> out({rows, lanes});
  std::copy_n(c.data(), rows * lanes, out.mutable_data());
  multiply_accumulate_i8({rows, lanes, depth}, a.data(), b.data(), out.mutable_data(), saturate);
  return out;
}

}  // namespace

Element element_named(const std::string& name) {
  static const std::map<std::string, Element> names{
      {"f32", Element::f32},           {"xf32", Element::xf32},         {"f16", Element::f16},
      {"bf16", Element::bf16},         {"fp8_ocp", Element::fp8_ocp},   {"bf8_ocp", Element::bf8_ocp},
      {"fp8_fnuz", Element::fp8_fnuz}, {"bf8_fnuz", Element::bf8_fnuz}, {"fp6", Element::fp6},
      {"bf6", Element::bf6},           {"fp4", Element::fp4},           {"f64", Element::f64}};
  const auto found = names.find(name);
  if (found == names.end()) throw std::invalid_argument("unknown element type " + name);
  return found->second;
}

void bind_mfma(py::module_& module) {
  module.def("multiply_accumulate", &multiply, py::arg("a_type"), py::arg("b_type"), py::arg("a"), py::arg("b"),
             py::arg("c"), py::arg("rule") = "cdna3", py::arg("saturate") = false, py::arg("a_scale") = py::none(),
             py::arg("b_scale") = py::none());
  module.def("multiply_accumulate_f32", &chain<float, chain_f32>);
  module.def("multiply_accumulate_f64", &chain<double, multiply_accumulate_f64>);
  module.def("multiply_accumulate_i8", &chain_i8);
}

}  // namespace amdsim::arith
