// Simulated devices: how many, of which chip, and what their properties are.
#pragma once

#include <string>
#include <vector>

#include "api.hpp"

namespace amdsim::hip {

/// Facts of a chip as AMD publishes them (CDNA3 and CDNA4 white papers and ISA guides).
struct Chip {
  const char* target;
  const char* name;
  const char* arch;  // gcnArchName of the shipped part
  int compute_units, xccs;
  int clock_khz, memory_clock_khz, memory_bus_bits;
  std::size_t memory_bytes, lds_bytes, lds_granule;
};

struct Settings {
  const Chip* chip = nullptr;
  int devices = 1;
  std::string llvm;                // libLLVM for code objects
  std::vector<std::string> relax;  // checks that do not stop a launch
  std::uint64_t seed = 0;
};

const Chip* find_chip(const std::string& target);

/// Read once from WARPWAVE_SIM_TARGET, WARPWAVE_SIM_DEVICES, WARPWAVE_LLVM; replaced by warpwaveSimConfigure.
Settings& settings();

int current_device();
void set_current_device(int device);
void check_device(int device);

DeviceProperties properties(int device);
int attribute(int which, int device);

}  // namespace amdsim::hip
