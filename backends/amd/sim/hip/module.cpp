#include "module.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "../object/bundle.hpp"
#include "device.hpp"
#include "errors.hpp"
#include "stream.hpp"

namespace amdsim::hip {
namespace {

std::mutex guard;
std::map<void*, std::unique_ptr<Module>>& modules() {
  static auto* all = new std::map<void*, std::unique_ptr<Module>>;
  return *all;
}

Module* load_bytes(std::vector<std::uint8_t> data) {
  check_device(current_device());
  auto module = std::make_unique<Module>();
  module->device = current_device();
  try {
    module->object = object::read(std::move(data), settings().chip->target);
  } catch (const object::ObjectError& error) {
    throw HipError(kInvalidImage, error.what());
  }
  if (module->object.target != settings().chip->target)
    throw HipError(kNoBinaryForGpu,
                   "code object for " + module->object.target + " on a simulated " + settings().chip->target);
  try {
    module->program = object::make_program(
        module->object, {settings().llvm, object::folder_of(reinterpret_cast<const void*>(&modules), "../../sysdeps")});
  } catch (const std::exception& error) {
    throw HipError(kInvalidImage, error.what());
  }
  Device& d = device(module->device);
  {
    const std::lock_guard lock(d.guard);
    d.machine.load(*module->program);
  }
  const std::lock_guard lock(guard);
  Module* handle = module.get();
  modules().emplace(handle, std::move(module));
  return handle;
}

void check_geometry(const object::Kernel& kernel, const Geometry& g) {
  const std::uint64_t threads = std::uint64_t{g.block[0]} * g.block[1] * g.block[2];
  require(threads > 0 && g.grid[0] > 0 && g.grid[1] > 0 && g.grid[2] > 0, kInvalidConfiguration,
          "a grid or block dimension is zero");
  if (threads > kernel.max_flat_workgroup_size)
    throw HipError(kInvalidConfiguration, std::to_string(threads) + " threads in a block; " + kernel.name +
                                              " was compiled for at most " +
                                              std::to_string(kernel.max_flat_workgroup_size));
  const std::size_t lds = std::size_t{kernel.descriptor.group_segment} + g.dynamic_lds;
  if (lds > settings().chip->lds_bytes)
    throw HipError(kLaunchOutOfResources, std::to_string(lds) + " bytes of LDS; the compute unit has " +
                                              std::to_string(settings().chip->lds_bytes));
}

bool hidden(const object::Argument& a) { return a.kind.starts_with("hidden_"); }

/// The explicit part of the kernarg segment: implicit arguments are the core's to fill in.
std::size_t explicit_size(const object::Kernel& kernel) {
  std::size_t end = 0;
  for (const object::Argument& a : kernel.arguments) {
    if (hidden(a)) break;
    end = std::max<std::size_t>(end, a.offset + a.size);
  }
  return kernel.arguments.empty() ? kernel.descriptor.kernarg_size : end;
}

std::vector<u8> from_parameters(const object::Kernel& kernel, void** parameters) {
  std::vector<u8> out(explicit_size(kernel));
  std::size_t next = 0;
  for (const object::Argument& a : kernel.arguments) {
    if (hidden(a)) break;
    require(parameters[next] != nullptr, kInvalidValue, "a kernel parameter is null");
    std::memcpy(out.data() + a.offset, parameters[next++], a.size);
  }
  return out;
}

std::vector<u8> from_extra(const object::Kernel& kernel, void** extra) {
  const u8* buffer = nullptr;
  std::size_t size = 0;
  for (void** at = extra; reinterpret_cast<std::uintptr_t>(*at) != kLaunchEnd; at += 2) {
    const auto key = reinterpret_cast<std::uintptr_t>(at[0]);
    if (key == kLaunchBufferPointer) buffer = static_cast<const u8*>(at[1]);
    else if (key == kLaunchBufferSize) size = *static_cast<const std::size_t*>(at[1]);
    else throw HipError(kInvalidValue, "unknown key in the launch's `extra`");
  }
  const std::size_t wanted = explicit_size(kernel);
  if (size < wanted)
    throw HipError(kInvalidValue, kernel.name + " takes " + std::to_string(wanted) + " bytes of arguments; " +
                                      std::to_string(size) + " were passed");
  require(buffer != nullptr || wanted == 0, kInvalidValue, "no argument buffer");
  return {buffer, buffer + wanted};
}

std::vector<u8> arguments(const object::Kernel& kernel, void** parameters, void** extra) {
  require(!(parameters && extra), kInvalidValue, "kernelParams and extra are both given");
  if (extra) return from_extra(kernel, extra);
  require(parameters || explicit_size(kernel) == 0, kInvalidValue, "the kernel takes arguments and none are given");
  return from_parameters(kernel, parameters);
}

u32 relaxed() {
  u32 mask = 0;
  for (const std::string& name : settings().relax) mask |= 1u << static_cast<int>(check_from_name(name));
  return mask;
}

void run(int index, const Program& program, const LaunchConfig& config) {
  Device& d = device(index);
  const std::lock_guard lock(d.guard);
  try {
    d.machine.launch(program, config);
  } catch (const SimError& error) {
    std::fprintf(stderr, "warpwave simulator: %s\n", error.what());
    const std::string& kind = error.violation().kind;
    throw HipError(kind == "bounds" ? kIllegalAddress : kLaunchFailure, error.what());
  } catch (const LoadError& error) {
    throw HipError(kLaunchFailure, error.what());
  }
}

}  // namespace

Module* load_module(const void* image) {
  require(image != nullptr, kInvalidValue, "null image");
  const auto* start = static_cast<const std::uint8_t*>(image);
  std::size_t size = 0;
  try {
    size = object::extent(start);
  } catch (const object::ObjectError& error) {
    throw HipError(kInvalidImage, error.what());
  }
  return load_bytes({start, start + size});
}

Module* load_module_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw HipError(kFileNotFound, "cannot read " + path);
  return load_bytes({std::istreambuf_iterator<char>(file), {}});
}

void unload_module(Module* module) {
  std::unique_ptr<Module> owned;
  {
    const std::lock_guard lock(guard);
    const auto found = modules().find(module);
    require(found != modules().end(), kInvalidHandle, "not a module");
    owned = std::move(found->second);
    modules().erase(found);
  }
  Device& d = device(owned->device);
  const std::lock_guard lock(d.guard);
  d.machine.unload(*owned->program);
}

Module& check_module(void* handle) {
  const std::lock_guard lock(guard);
  const auto found = modules().find(handle);
  require(found != modules().end(), kInvalidHandle, "not a module");
  return *found->second;
}

Function* find_function(Module& module, const std::string& name) {
  const object::Kernel* kernel = module.object.kernel(name);
  if (!kernel) throw HipError(kNotFound, "no kernel named " + name + " in the module");
  const std::lock_guard lock(guard);
  for (const auto& known : module.functions)
    if (known->kernel == kernel) return known.get();
  module.functions.push_back(std::make_unique<Function>(Function{&module, kernel}));
  return module.functions.back().get();
}

Function& check_function(void* handle) {
  const std::lock_guard lock(guard);
  for (const auto& [key, module] : modules())
    for (const auto& known : module->functions)
      if (known.get() == handle) return *known;
  throw HipError(kInvalidHandle, "not a function of a loaded module");
}

std::pair<std::uint64_t, std::size_t> find_global(Module& module, const std::string& name) {
  const object::elf::Symbol* symbol = module.object.symbol(name);
  if (!symbol) throw HipError(kNotFound, "no variable named " + name + " in the module");
  return {object::symbol_address(module.object, *module.program, name), symbol->size};
}

int function_attribute(const Function& function, int which) {
  const object::Kernel& k = *function.kernel;
  switch (which) {
    case 0: return static_cast<int>(k.max_flat_workgroup_size);
    case 1: return static_cast<int>(k.descriptor.group_segment);
    case 2: return 0;  // constant memory
    case 3: return static_cast<int>(k.descriptor.private_segment);
    case 4: return static_cast<int>(k.vgpr_count);
    case 5:
    case 6: return function.module->object.target == "gfx942" ? 94 : 95;
    case 7: return 0;
    case 8: return static_cast<int>(settings().chip->lds_bytes - k.descriptor.group_segment);
    case 9: return 0;
    default: throw HipError(kInvalidValue, "unknown function attribute " + std::to_string(which));
  }
}

int occupancy(const Function& function, unsigned threads, std::size_t dynamic_lds) {
  const object::Descriptor& d = function.kernel->descriptor;
  if (threads == 0 || threads > function.kernel->max_flat_workgroup_size) return 0;
  const Chip& chip = *settings().chip;
  const unsigned waves = (threads + 63) / 64;
  // Four SIMDs with 512 registers and eight wave slots each; a workgroup of one wave needs no barrier (AMDGPUUsage).
  const unsigned per_simd = std::min(8u, 512u / d.vector_registers());
  unsigned groups = per_simd * 4 / waves;
  if (waves > 1) groups = std::min(groups, 16u);
  const std::size_t lds = (d.group_segment + dynamic_lds + chip.lds_granule - 1) / chip.lds_granule * chip.lds_granule;
  if (lds > 0) groups = std::min(groups, static_cast<unsigned>(chip.lds_bytes / lds));
  return static_cast<int>(groups);
}

int compute_units() { return settings().chip->compute_units; }

void launch(Function& function, const Geometry& g, void* stream, void** parameters, void** extra) {
  const object::Kernel& kernel = *function.kernel;
  check_geometry(kernel, g);
  LaunchConfig config;
  config.kernel = kernel.name;
  std::copy(g.grid.begin(), g.grid.end(), config.grid);
  std::copy(g.block.begin(), g.block.end(), config.block);
  config.kernarg = arguments(kernel, parameters, extra);
  config.dynamic_lds = g.dynamic_lds;
  config.seed = settings().seed;
  config.relaxed = relaxed();
  const Program& program = *function.module->program;
  enqueue(stream,
          [index = function.module->device, &program, config = std::move(config)] { run(index, program, config); });
}

}  // namespace amdsim::hip
