// Device and host allocations: real addresses that kernels and the host share, with the bounds of each known.
#pragma once

#include <memory>
#include <mutex>

#include "../core/machine.hpp"
#include "api.hpp"

namespace amdsim::hip {

/// One simulated device. Everything that touches its memory holds `guard`: launches and copies run one at a time.
struct Device {
  explicit Device(const Target& target) : machine(target) {}
  std::mutex guard;
  Machine machine;
};

Device& device(int index);

/// Whether any device has been used, after which its chip and the number of devices are fixed.
bool devices_in_use();

struct Allocation {
  std::uintptr_t base = 0;
  std::size_t size = 0;
  MemoryType type = kUnregistered;
  int device = 0;
  unsigned flags = 0;
  std::uintptr_t device_address = 0;  // differs from base for registered host memory only
};

void* allocate(std::size_t size, MemoryType type, unsigned flags);
void release(void* pointer, bool host);
void register_host(void* pointer, std::size_t size, unsigned flags);
void unregister_host(void* pointer);

/// The allocation that holds `pointer`, or one of type kUnregistered.
Allocation find_allocation(const void* pointer);

/// Bytes that hipMalloc has given out on `device`.
std::size_t allocated_bytes(int device);

/// Copies between any two of host and device memory; checks bounds on the device side and marks what is defined.
void copy(void* to, const void* from, std::size_t size);

/// Repeats `value` of `width` bytes `count` times.
void fill(void* to, std::uint32_t value, unsigned width, std::size_t count);

/// Throws unless [pointer, pointer + size) is host memory or lies inside one device buffer.
void check_range(const void* pointer, std::size_t size);

}  // namespace amdsim::hip
