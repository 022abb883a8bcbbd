// Python access to the arithmetic functions, for their tests only: the submodule `_sim.arith`.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "../mfma_elements.hpp"

namespace amdsim::arith {

Element element_named(const std::string& name);

void bind_mfma(pybind11::module_& module);
void bind_formats(pybind11::module_& module);
void bind_scalars(pybind11::module_& module);

// Adds everything above to `module`; called once from the extension's entry point.
void bind_arith(pybind11::module_& module);

}  // namespace amdsim::arith
