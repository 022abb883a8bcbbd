#include "device.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "errors.hpp"

namespace amdsim::hip {
namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;

constexpr Chip kChips[] = {
    {"gfx942", "AMD Instinct MI300X (warpwave simulator)", "gfx942:sramecc+:xnack-", 304, 8, 2100000, 1300000, 8192,
     192 * kGiB, 64 * 1024, 512},
    {"gfx950", "AMD Instinct MI355X (warpwave simulator)", "gfx950:sramecc+:xnack-", 256, 8, 2400000, 2000000, 8192,
     288 * kGiB, 160 * 1024, 1280},
};

thread_local int current = 0;

Settings from_environment() {
  auto get = [](const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return std::string(value ? value : otherwise);
  };
  Settings s;
  s.chip = find_chip(get("WARPWAVE_SIM_TARGET", "gfx950"));
  s.devices = std::atoi(get("WARPWAVE_SIM_DEVICES", "1").c_str());
  s.llvm = get("WARPWAVE_LLVM", "");
  return s;
}

// The simulated memory is the host's, so the smaller of the two is what can be had.
std::size_t memory_bytes(const Chip& chip) {
  const std::size_t host =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return std::min(chip.memory_bytes, host);
}

struct Attribute {
  int number;
  int (*value)(const Chip&);
};

// hipDeviceAttribute_t numbers. What is not listed does not exist on the simulator: hipErrorInvalidValue.
constexpr Attribute kAttributes[] = {
    {2, [](const Chip&) { return 1; }},                                    // AsyncEngineCount
    {3, [](const Chip&) { return 1; }},                                    // CanMapHostMemory
    {4, [](const Chip&) { return 1; }},                                    // CanUseHostPointerForRegisteredMem
    {5, [](const Chip& c) { return c.clock_khz; }},                        // ClockRate
    {6, [](const Chip&) { return 0; }},                                    // ComputeMode
    {8, [](const Chip&) { return 1; }},                                    // ConcurrentKernels
    {10, [](const Chip&) { return 0; }},                                   // CooperativeLaunch
    {11, [](const Chip&) { return 0; }},                                   // CooperativeMultiDeviceLaunch
    {16, [](const Chip&) { return 0; }},                                   // Integrated
    {17, [](const Chip&) { return 0; }},                                   // IsMultiGpuBoard
    {18, [](const Chip&) { return 0; }},                                   // KernelExecTimeout
    {19, [](const Chip&) { return 4 << 20; }},                             // L2CacheSize (one XCD)
    {23, [](const Chip&) { return 9; }},                                   // ComputeCapabilityMajor
    {24, [](const Chip&) { return 1; }},                                   // ManagedMemory
    {25, [](const Chip&) { return 32; }},                                  // MaxBlocksPerMultiProcessor
    {26, [](const Chip&) { return 1024; }},                                // MaxBlockDimX
    {27, [](const Chip&) { return 1024; }},                                // MaxBlockDimY
    {28, [](const Chip&) { return 1024; }},                                // MaxBlockDimZ
    {29, [](const Chip&) { return 0x7fffffff; }},                          // MaxGridDimX
    {30, [](const Chip&) { return 65536; }},                               // MaxGridDimY
    {31, [](const Chip&) { return 65536; }},                               // MaxGridDimZ
    {56, [](const Chip&) { return 1024; }},                                // MaxThreadsPerBlock
    {57, [](const Chip&) { return 2048; }},                                // MaxThreadsPerMultiProcessor
    {59, [](const Chip& c) { return c.memory_bus_bits; }},                 // MemoryBusWidth
    {60, [](const Chip& c) { return c.memory_clock_khz; }},                // MemoryClockRate
    {61, [](const Chip& c) { return c.target[4] == '4' ? 4 : 5; }},        // ComputeCapabilityMinor
    {63, [](const Chip& c) { return c.compute_units; }},                   // MultiprocessorCount
    {67, [](const Chip&) { return 0; }},                                   // PciBusId
    {68, [](const Chip&) { return 0; }},                                   // PciDeviceId
    {69, [](const Chip&) { return 0; }},                                   // PciDomainId
    {71, [](const Chip&) { return 131072; }},                              // MaxRegistersPerBlock
    {72, [](const Chip&) { return 131072; }},                              // MaxRegistersPerMultiprocessor
    {73, [](const Chip&) { return 0; }},                                   // ReservedSharedMemPerBlock
    {74, [](const Chip& c) { return static_cast<int>(c.lds_bytes); }},     // MaxSharedMemoryPerBlock
    {75, [](const Chip& c) { return static_cast<int>(c.lds_bytes); }},     // SharedMemPerBlockOptin
    {76, [](const Chip& c) { return static_cast<int>(c.lds_bytes); }},     // SharedMemPerMultiprocessor
    {78, [](const Chip&) { return 0; }},                                   // StreamPrioritiesSupported
    {85, [](const Chip&) { return 1; }},                                   // UnifiedAddressing
    {87, [](const Chip&) { return 64; }},                                  // WarpSize
    {88, [](const Chip&) { return 0; }},                                   // MemoryPoolsSupported
    {89, [](const Chip&) { return 0; }},                                   // VirtualMemoryManagementSupported
    {90, [](const Chip&) { return 1; }},                                   // HostRegisterSupported
    {10002, [](const Chip& c) { return static_cast<int>(c.lds_bytes); }},  // MaxSharedMemoryPerMultiprocessor
    {10011, [](const Chip&) { return 1; }},                                // IsLargeBar
    {10015, [](const Chip& c) { return c.compute_units; }},                // PhysicalMultiProcessorCount
    {10016, [](const Chip&) { return 1; }},                                // FineGrainSupport
    {10017, [](const Chip&) { return 100000; }},                           // WallClockRate: s_memrealtime, kHz
    {10018, [](const Chip& c) { return c.xccs; }},                         // NumberOfXccs
    {10019, [](const Chip&) { return 512; }},                              // MaxAvailableVgprsPerThread
};

}  // namespace

const Chip* find_chip(const std::string& target) {
  for (const Chip& chip : kChips)
    if (target == chip.target) return &chip;
  return nullptr;
}

Settings& settings() {
  static Settings s = from_environment();
  return s;
}

int current_device() { return current; }

void check_device(int device) {
  require(settings().chip != nullptr && settings().devices > 0, kNoDevice,
          "WARPWAVE_SIM_TARGET names no simulated chip");
  require(device >= 0 && device < settings().devices, kInvalidDevice, "no such device");
}

void set_current_device(int device) {
  check_device(device);
  current = device;
}

DeviceProperties properties(int device) {
  check_device(device);
  const Chip& chip = *settings().chip;
  DeviceProperties p{};
  std::strncpy(p.name, chip.name, sizeof p.name - 1);
  std::strncpy(p.gcn_arch_name, chip.arch, sizeof p.gcn_arch_name - 1);
  std::memcpy(p.uuid, "warpwave-sim", 12);
  p.uuid[15] = static_cast<char>('0' + device);
  p.total_global_mem = memory_bytes(chip);
  p.shared_mem_per_block = p.shared_mem_per_multiprocessor = p.shared_mem_per_block_optin = chip.lds_bytes;
  p.max_shared_memory_per_multi_processor = chip.lds_bytes;
  p.regs_per_block = p.regs_per_multiprocessor = 131072;
  p.warp_size = 64;
  p.max_threads_per_block = 1024;
  std::fill(std::begin(p.max_threads_dim), std::end(p.max_threads_dim), 1024);
  p.max_grid_size[0] = 0x7fffffff;
  p.max_grid_size[1] = p.max_grid_size[2] = 65536;
  p.clock_rate = chip.clock_khz;
  p.clock_instruction_rate = 100000;
  p.memory_clock_rate = chip.memory_clock_khz;
  p.memory_bus_width = chip.memory_bus_bits;
  p.total_const_mem = p.mem_pitch = 0x7fffffff;
  p.major = attribute(23, device);
  p.minor = attribute(61, device);
  p.multi_processor_count = chip.compute_units;
  p.max_threads_per_multi_processor = 2048;
  p.max_blocks_per_multi_processor = 32;
  p.l2_cache_size = 4 << 20;
  p.can_map_host_memory = p.concurrent_kernels = p.unified_addressing = p.managed_memory = p.is_large_bar = 1;
  p.async_engine_count = 1;
  p.ecc_enabled = 1;
  p.features[0] = 1;  // hostRegisterSupported
  return p;
}

int attribute(int which, int device) {
  check_device(device);
  for (const Attribute& a : kAttributes)
    if (a.number == which) return a.value(*settings().chip);
  throw HipError(kInvalidValue, "device attribute " + std::to_string(which) + " is not known to the simulator");
}

}  // namespace amdsim::hip
