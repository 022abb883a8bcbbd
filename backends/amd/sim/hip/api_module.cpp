// Modules, kernels and launches.
#include "errors.hpp"
#include "export.hpp"
#include "module.hpp"
#include "stream.hpp"

using namespace amdsim::hip;

namespace {

/// The largest block (a multiple of a wave) that gives the most waves per compute unit.
std::pair<int, int> best_block(const Function& function, std::size_t dynamic_lds, int limit) {
  int best = 64, most = 0;
  const int largest = function_attribute(function, 0);
  for (int threads = 64; threads <= (limit > 0 ? std::min(limit, largest) : largest); threads += 64) {
    const int resident = occupancy(function, static_cast<unsigned>(threads), dynamic_lds) * threads;
    if (resident >= most) best = threads, most = resident;
  }
  return {best, most / best};
}

}  // namespace

HIP_API hipModuleLoad(void** out, const char* path) {
  return guarded([&] {
    require(path != nullptr, kInvalidValue, "null path");
    give(out, static_cast<void*>(load_module_file(path)));
  });
}

HIP_API hipModuleLoadData(void** out, const void* image) {
  return guarded([&] { give(out, static_cast<void*>(load_module(image))); });
}

HIP_API hipModuleLoadDataEx(void** out, const void* image, unsigned, int*, void**) {
  return hipModuleLoadData(out, image);
}

HIP_API hipModuleUnload(void* module) {
  return guarded([&] {
    check_module(module);
    enqueue(nullptr, [] {})->wait();
    unload_module(static_cast<Module*>(module));
  });
}

HIP_API hipModuleGetFunction(void** out, void* module, const char* name) {
  return guarded([&] {
    require(name != nullptr, kInvalidValue, "null name");
    give(out, static_cast<void*>(find_function(check_module(module), name)));
  });
}

HIP_API hipModuleGetGlobal(void** address, std::size_t* size, void* module, const char* name) {
  return guarded([&] {
    require(name != nullptr, kInvalidValue, "null name");
    const auto [at, bytes] = find_global(check_module(module), name);
    if (address) *address = reinterpret_cast<void*>(at);
    if (size) *size = bytes;
  });
}

HIP_API hipFuncGetAttribute(int* value, int which, void* function) {
  return guarded([&] { give(value, function_attribute(check_function(function), which)); });
}

HIP_API hipModuleLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                              unsigned block_y, unsigned block_z, unsigned dynamic_lds, void* stream, void** parameters,
                              void** extra) {
  return guarded([&] {
    const Geometry geometry{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_lds};
    launch(check_function(function), geometry, stream, parameters, extra);
  });
}

HIP_API hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads,
                                                           std::size_t dynamic_lds) {
  return guarded([&] {
    require(threads > 0, kInvalidValue, "block size must be positive");
    give(blocks, occupancy(check_function(function), static_cast<unsigned>(threads), dynamic_lds));
  });
}

HIP_API hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void* function, int threads,
                                                                    std::size_t dynamic_lds, unsigned) {
  return hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, dynamic_lds);
}

HIP_API hipModuleOccupancyMaxPotentialBlockSize(int* grid, int* block, void* function, std::size_t dynamic_lds,
                                                int limit) {
  return guarded([&] {
    const Function& f = check_function(function);
    const auto [threads, resident] = best_block(f, dynamic_lds, limit);
    give(block, threads);
    give(grid, resident * compute_units());
  });
}
