#include "memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

#include "device.hpp"
#include "errors.hpp"

namespace amdsim::hip {
namespace {

// Allocations take whole 4 GiB slots of the process's own address space, so that a kernel's pointer and the host's are
// the same number and every slot holds one buffer (core/memory.hpp). Programs sit below 0x0400'0000'0000, the C
// library and executables above 0x5000'0000'0000.
constexpr std::uintptr_t kFirstAddress = 0x1000'0000'0000, kLastAddress = 0x5000'0000'0000;
constexpr std::uintptr_t kSlot = std::uintptr_t{1} << kSlotShift;

class Table {
 public:
  std::mutex guard;
  std::map<std::uintptr_t, Allocation> by_base;

  std::uintptr_t reserve(std::size_t size) {
    const std::size_t slots = (size + kGuard + kSlot - 1) / kSlot;
    while (next_ + slots * kSlot <= kLastAddress) {
      const std::uintptr_t base = next_ + kGuard;
      next_ += slots * kSlot;
      void* got = mmap(reinterpret_cast<void*>(base), size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
      if (got == reinterpret_cast<void*>(base)) return base;
      require(errno == EEXIST, kOutOfMemory, "the host refuses the memory");
    }
    next_ = kFirstAddress;
    throw HipError(kOutOfMemory, "no free address range");
  }

 private:
  std::uintptr_t next_ = kFirstAddress;
};

// Never destroyed: streams of a process that exits may still run.
Table& table() {
  static Table* t = new Table;
  return *t;
}

struct Devices {
  std::mutex guard;
  std::map<int, std::unique_ptr<Device>> by_index;
};

Devices& devices() {
  static Devices* all = new Devices;
  return *all;
}

template <class Body>
void on_devices(const Allocation& a, Body&& body) {
  const int first = a.type == kDevice ? a.device : 0;
  const int last = a.type == kDevice ? a.device : settings().devices - 1;
  for (int i = first; i <= last; ++i) {
    Device& d = device(i);
    const std::lock_guard lock(d.guard);
    body(d.machine.memory());
  }
}

std::string describe(const Allocation& a) {
  const char* call = a.type == kDevice ? "hipMalloc" : a.type == kManaged ? "hipMallocManaged" : "host memory";
  char text[64];
  std::snprintf(text, sizeof text, "%s 0x%zx", call, static_cast<std::size_t>(a.base));
  return text;
}

/// The region of `device`'s memory that holds the pointer, and the host byte behind it.
struct Place {
  Region* region = nullptr;
  std::uint64_t offset = 0;
};

Place place(GlobalMemory& memory, const void* pointer, std::size_t size) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  Region* region = memory.slot(address);
  if (!region) {
    require(address != 0, kInvalidValue, "null pointer");
    require(address < kFirstAddress || address >= kLastAddress, kInvalidValue,
            "a device address that is not allocated");
    return {};
  }
  if (!memory.find(address, size))
    throw HipError(kInvalidValue, std::to_string(size) + " bytes at " + memory.describe(address) + " leave the buffer");
  return {region, address - region->base};
}

bool get_bit(const Region& r, std::uint64_t byte) {
  return !r.uninit.empty() && (r.uninit[byte / 64] >> byte % 64 & 1);
}

void set_bit(Region& r, std::uint64_t byte, bool undefined) {
  if (r.uninit.empty()) return;
  const u64 mask = u64{1} << byte % 64;
  undefined ? r.uninit[byte / 64] |= mask : r.uninit[byte / 64] &= ~mask;
}

void inherit(Region& to, std::uint64_t at, const Region* from, std::uint64_t from_at, std::size_t size) {
  if (!from || from->uninit.empty()) return to.define(at, size);
  for (std::size_t i = 0; i < size; ++i) set_bit(to, at + i, get_bit(*from, from_at + i));
}

/// The device whose memory a pointer names, else the current one.
int device_of(const void* pointer) {
  const Allocation a = find_allocation(pointer);
  return a.type == kDevice ? a.device : current_device();
}

}  // namespace

Device& device(int index) {
  check_device(index);
  Devices& all = devices();
  const std::lock_guard lock(all.guard);
  std::unique_ptr<Device>& d = all.by_index[index];
  if (!d) d = std::make_unique<Device>(*find_target(settings().chip->target));
  return *d;
}

bool devices_in_use() {
  Devices& all = devices();
  const std::lock_guard lock(all.guard);
  return !all.by_index.empty();
}

void* allocate(std::size_t size, MemoryType type, unsigned flags) {
  check_device(current_device());
  if (size == 0) return nullptr;
  Table& t = table();
  Allocation a{0, size, type, current_device(), flags, 0};
  {
    const std::lock_guard lock(t.guard);
    a.base = a.device_address = t.reserve(size);
    t.by_base[a.base] = a;
  }
  on_devices(a, [&](GlobalMemory& memory) {
    memory.map_at(a.base, reinterpret_cast<void*>(a.base), size, describe(a), true);
    if (type == kDevice) memory.slot(a.base)->uninit.assign((size + 63) / 64, ~u64{0});
  });
  return reinterpret_cast<void*>(a.base);
}

void release(void* pointer, bool host) {
  if (!pointer) return;
  Table& t = table();
  Allocation a;
  {
    const std::lock_guard lock(t.guard);
    const auto found = t.by_base.find(reinterpret_cast<std::uintptr_t>(pointer));
    require(found != t.by_base.end() && (found->second.type == kHost) == host, kInvalidDevicePointer,
            "not the start of such an allocation");
    a = found->second;
    require(a.device_address == a.base, kInvalidValue, "registered memory is released by hipHostUnregister");
    t.by_base.erase(found);
  }
  on_devices(a, [&](GlobalMemory& memory) { memory.unmap(a.base); });
  munmap(pointer, a.size);
}

void register_host(void* pointer, std::size_t size, unsigned flags) {
  require(pointer && size > 0, kInvalidValue, "null or empty range");
  require(settings().devices == 1, kNotSupported, "registered host memory needs a single simulated device");
  Table& t = table();
  const std::lock_guard lock(t.guard);
  Allocation a{reinterpret_cast<std::uintptr_t>(pointer), size, kHost, current_device(), flags, 0};
  require(t.by_base.find(a.base) == t.by_base.end(), kHostMemoryAlreadyRegistered, "already registered");
  on_devices(a, [&](GlobalMemory& memory) { a.device_address = memory.map(pointer, size, describe(a)); });
  t.by_base[a.base] = a;
}

void unregister_host(void* pointer) {
  Table& t = table();
  const std::lock_guard lock(t.guard);
  const auto found = t.by_base.find(reinterpret_cast<std::uintptr_t>(pointer));
  require(found != t.by_base.end() && found->second.base != found->second.device_address, kHostMemoryNotRegistered,
          "not registered host memory");
  on_devices(found->second, [&](GlobalMemory& memory) { memory.unmap(found->second.device_address); });
  t.by_base.erase(found);
}

Allocation find_allocation(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  Table& t = table();
  const std::lock_guard lock(t.guard);
  auto after = t.by_base.upper_bound(address);
  if (after == t.by_base.begin()) return {};
  const Allocation& a = std::prev(after)->second;
  return address - a.base < a.size ? a : Allocation{};
}

std::size_t allocated_bytes(int device) {
  Table& t = table();
  const std::lock_guard lock(t.guard);
  std::size_t total = 0;
  for (const auto& [base, a] : t.by_base)
    if (a.type == kDevice && a.device == device) total += a.size;
  return total;
}

void copy(void* to, const void* from, std::size_t size) {
  if (size == 0) return;
  const int destination = device_of(to), source = device_of(from);
  Device& d = device(destination);
  Device& s = device(source);
  std::unique_lock first(d.guard, std::defer_lock), second(s.guard, std::defer_lock);
  if (&d == &s) first.lock();
  else std::lock(first, second);
  const Place target = place(d.machine.memory(), to, size), origin = place(s.machine.memory(), from, size);
  std::memmove(target.region ? target.region->host + target.offset : to,
               origin.region ? origin.region->host + origin.offset : from, size);
  if (target.region) inherit(*target.region, target.offset, origin.region, origin.offset, size);
}

void fill(void* to, std::uint32_t value, unsigned width, std::size_t count) {
  if (count == 0) return;
  Device& d = device(device_of(to));
  const std::lock_guard lock(d.guard);
  const Place target = place(d.machine.memory(), to, count * width);
  auto* bytes = static_cast<std::uint8_t*>(target.region ? target.region->host + target.offset : to);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(bytes + i * width, &value, width);
  if (target.region) target.region->define(target.offset, count * width);
}

void check_range(const void* pointer, std::size_t size) {
  if (size == 0) return;
  Device& d = device(device_of(pointer));
  const std::lock_guard lock(d.guard);
  place(d.machine.memory(), pointer, size);
}

}  // namespace amdsim::hip
