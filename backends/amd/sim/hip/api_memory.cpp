// Allocation, copies, fills and pointer queries.
#include "device.hpp"
#include "errors.hpp"
#include "export.hpp"
#include "memory.hpp"
#include "stream.hpp"

using namespace amdsim::hip;

namespace {

Error allocate_into(void** out, std::size_t size, MemoryType type, unsigned flags) {
  return guarded([&] { give(out, allocate(size, type, flags)); });
}

// Freeing waits for everything that may still use the buffer, and leaves launch failures for the next synchronisation.
void drain() {
  Point all = enqueue(nullptr, [] {});
  all->wait();
}

bool pageable(const void* pointer) { return find_allocation(pointer).type == kUnregistered; }

void check_kind(const void* to, const void* from, int kind) {
  require(kind >= kHostToHost && kind <= kDefault, kInvalidMemcpyDirection, "unknown kind of copy");
  const bool to_device = find_allocation(to).type == kDevice, from_device = find_allocation(from).type == kDevice;
  const bool wrong = (to_device && (kind == kHostToHost || kind == kDeviceToHost)) ||
                     (from_device && (kind == kHostToHost || kind == kHostToDevice));
  require(!wrong, kInvalidMemcpyDirection, "the kind of copy does not fit the pointers");
}

/// As HIP does, a copy that touches pageable host memory is over when the call returns, whatever the stream.
void queue_copy(void* to, const void* from, std::size_t size, int kind, void* stream, bool wait) {
  if (size == 0) return;
  check_kind(to, from, kind);
  check_range(to, size);
  check_range(from, size);
  const Point done = enqueue(stream, [=] { copy(to, from, size); });
  if (!wait && !pageable(to) && !pageable(from)) return;
  done->wait();
  synchronize(stream);
}

void queue_fill(void* to, std::uint32_t value, unsigned width, std::size_t count, void* stream, bool wait) {
  check_range(to, count * width);
  enqueue(stream, [=] { fill(to, value, width, count); });
  if (wait) synchronize(stream);
}

}  // namespace

HIP_API hipMalloc(void** out, std::size_t size) { return allocate_into(out, size, kDevice, 0); }

HIP_API hipExtMallocWithFlags(void** out, std::size_t size, unsigned flags) {
  return allocate_into(out, size, kDevice, flags);
}

HIP_API hipMallocAsync(void** out, std::size_t size, void* stream) {
  return guarded([&] {
    find_stream(stream);
    give(out, allocate(size, kDevice, 0));
  });
}

HIP_API hipMallocManaged(void** out, std::size_t size, unsigned flags) {
  return allocate_into(out, size, kManaged, flags);
}

HIP_API hipHostMalloc(void** out, std::size_t size, unsigned flags) { return allocate_into(out, size, kHost, flags); }

HIP_API hipHostAlloc(void** out, std::size_t size, unsigned flags) { return allocate_into(out, size, kHost, flags); }

HIP_API hipFree(void* pointer) {
  return guarded([&] {
    drain();
    release(pointer, false);
  });
}

HIP_API hipFreeAsync(void* pointer, void* stream) {
  return guarded([&] { enqueue(stream, [=] { release(pointer, false); }); });
}

HIP_API hipHostFree(void* pointer) {
  return guarded([&] {
    drain();
    release(pointer, true);
  });
}

HIP_API hipHostRegister(void* pointer, std::size_t size, unsigned flags) {
  return guarded([&] { register_host(pointer, size, flags); });
}

HIP_API hipHostUnregister(void* pointer) {
  return guarded([&] {
    drain();
    unregister_host(pointer);
  });
}

HIP_API hipHostGetDevicePointer(void** out, void* host, unsigned) {
  return guarded([&] {
    const Allocation a = find_allocation(host);
    require(a.type == kHost, kInvalidValue, "not pinned host memory");
    give(out, reinterpret_cast<void*>(a.device_address + (reinterpret_cast<std::uintptr_t>(host) - a.base)));
  });
}

HIP_API hipHostGetFlags(unsigned* out, void* host) {
  return guarded([&] {
    const Allocation a = find_allocation(host);
    require(a.type == kHost, kInvalidValue, "not pinned host memory");
    give(out, a.flags);
  });
}

HIP_API hipMemGetInfo(std::size_t* free, std::size_t* total) {
  return guarded([&] {
    const std::size_t all = properties(current_device()).total_global_mem, used = allocated_bytes(current_device());
    give(total, all);
    give(free, used < all ? all - used : 0);
  });
}

HIP_API hipMemGetAddressRange(void** base, std::size_t* size, void* pointer) {
  return guarded([&] {
    const Allocation a = find_allocation(pointer);
    require(a.type != kUnregistered, kNotFound, "not an allocation of this runtime");
    if (base) *base = reinterpret_cast<void*>(a.base);
    if (size) *size = a.size;
  });
}

HIP_API hipMemPtrGetInfo(void* pointer, std::size_t* size) { return hipMemGetAddressRange(nullptr, size, pointer); }

HIP_API hipPointerGetAttributes(PointerAttributes* out, const void* pointer) {
  return guarded([&] {
    const Allocation a = find_allocation(pointer);
    require(a.type != kUnregistered, kInvalidValue, "not an allocation of this runtime");
    auto* address = const_cast<void*>(pointer);
    const auto offset = reinterpret_cast<std::uintptr_t>(pointer) - a.base;
    give(out, {a.type, a.device, reinterpret_cast<void*>(a.device_address + offset),
               a.type == kDevice ? nullptr : address, a.type == kManaged, a.flags});
  });
}

HIP_API hipPointerGetAttribute(void* out, int which, void* pointer) {
  return guarded([&] {
    require(out != nullptr, kInvalidValue, "null output pointer");
    const Allocation a = find_allocation(pointer);
    require(a.type != kUnregistered, kInvalidValue, "not an allocation of this runtime");
    switch (which) {
      case 2: *static_cast<unsigned*>(out) = a.type; break;
      case 3:
        *static_cast<std::uintptr_t*>(out) = a.device_address + (reinterpret_cast<std::uintptr_t>(pointer) - a.base);
        break;
      case 4: *static_cast<void**>(out) = a.type == kDevice ? nullptr : pointer; break;
      case 8: *static_cast<unsigned*>(out) = a.type == kManaged; break;
      case 9: *static_cast<int*>(out) = a.device; break;
      case 11: *static_cast<std::uintptr_t*>(out) = a.base; break;
      case 12: *static_cast<std::size_t*>(out) = a.size; break;
      default: throw HipError(kNotSupported, "pointer attribute " + std::to_string(which));
    }
  });
}

HIP_API hipMemcpy(void* to, const void* from, std::size_t size, int kind) {
  return guarded([&] { queue_copy(to, from, size, kind, nullptr, true); });
}

HIP_API hipMemcpyWithStream(void* to, const void* from, std::size_t size, int kind, void* stream) {
  return guarded([&] { queue_copy(to, from, size, kind, stream, true); });
}

HIP_API hipMemcpyAsync(void* to, const void* from, std::size_t size, int kind, void* stream) {
  return guarded([&] { queue_copy(to, from, size, kind, stream, false); });
}

HIP_API hipMemcpyHtoD(void* to, const void* from, std::size_t size) { return hipMemcpy(to, from, size, kDefault); }

HIP_API hipMemcpyDtoH(void* to, void* from, std::size_t size) { return hipMemcpy(to, from, size, kDefault); }

HIP_API hipMemcpyDtoD(void* to, void* from, std::size_t size) { return hipMemcpy(to, from, size, kDefault); }

HIP_API hipMemcpyHtoDAsync(void* to, const void* from, std::size_t size, void* stream) {
  return hipMemcpyAsync(to, from, size, kDefault, stream);
}

HIP_API hipMemcpyDtoHAsync(void* to, void* from, std::size_t size, void* stream) {
  return hipMemcpyAsync(to, from, size, kDefault, stream);
}

HIP_API hipMemcpyDtoDAsync(void* to, void* from, std::size_t size, void* stream) {
  return hipMemcpyAsync(to, from, size, kDefault, stream);
}

HIP_API hipMemset(void* to, int value, std::size_t size) {
  return guarded([&] { queue_fill(to, static_cast<std::uint8_t>(value), 1, size, nullptr, true); });
}

HIP_API hipMemsetAsync(void* to, int value, std::size_t size, void* stream) {
  return guarded([&] { queue_fill(to, static_cast<std::uint8_t>(value), 1, size, stream, false); });
}

HIP_API hipMemsetD8(void* to, unsigned char value, std::size_t count) {
  return guarded([&] { queue_fill(to, value, 1, count, nullptr, true); });
}

HIP_API hipMemsetD16(void* to, unsigned short value, std::size_t count) {
  return guarded([&] { queue_fill(to, value, 2, count, nullptr, true); });
}

HIP_API hipMemsetD32(void* to, int value, std::size_t count) {
  return guarded([&] { queue_fill(to, static_cast<std::uint32_t>(value), 4, count, nullptr, true); });
}

HIP_API hipMemsetD8Async(void* to, unsigned char value, std::size_t count, void* stream) {
  return guarded([&] { queue_fill(to, value, 1, count, stream, false); });
}

HIP_API hipMemsetD16Async(void* to, unsigned short value, std::size_t count, void* stream) {
  return guarded([&] { queue_fill(to, value, 2, count, stream, false); });
}

HIP_API hipMemsetD32Async(void* to, int value, std::size_t count, void* stream) {
  return guarded([&] { queue_fill(to, static_cast<std::uint32_t>(value), 4, count, stream, false); });
}
