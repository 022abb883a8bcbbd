// Modules, the kernels in them, and launches.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "../object/program.hpp"
#include "memory.hpp"

namespace amdsim::hip {

struct Module;

struct Function {
  Module* module = nullptr;
  const object::Kernel* kernel = nullptr;
};

struct Module {
  int device = 0;
  object::CodeObject object;
  std::unique_ptr<Program> program;
  std::vector<std::unique_ptr<Function>> functions;
};

struct Geometry {
  std::array<unsigned, 3> grid, block;
  unsigned dynamic_lds = 0;
};

Module* load_module(const void* image);
Module* load_module_file(const std::string& path);
void unload_module(Module* module);
Module& check_module(void* handle);

Function* find_function(Module& module, const std::string& name);
Function& check_function(void* handle);

/// Address and size of a module's variable.
std::pair<std::uint64_t, std::size_t> find_global(Module& module, const std::string& name);

int function_attribute(const Function& function, int which);

/// Workgroups of `threads` that one compute unit can hold.
int occupancy(const Function& function, unsigned threads, std::size_t dynamic_lds);

/// Of the simulated chip.
int compute_units();

/// Checks the geometry, gathers the arguments now and queues the kernel on `stream`.
void launch(Function& function, const Geometry& geometry, void* stream, void** parameters, void** extra);

}  // namespace amdsim::hip
