// hipInit, versions, devices, contexts, errors, and the simulator's own settings.
#include <cstring>
#include <sstream>

#include "device.hpp"
#include "errors.hpp"
#include "export.hpp"
#include "memory.hpp"
#include "stream.hpp"

using namespace amdsim::hip;

namespace {

constexpr int kVersion = 71500000;  // HIP 7.15: the interface version that hip-python 10 is generated from

// A context is a device; its handle is a stable non-null address per device.
char context_marks[64];

void* context_of(int device) { return &context_marks[device]; }

int device_of_context(void* context) {
  const auto index = static_cast<char*>(context) - context_marks;
  require(index >= 0 && index < settings().devices, kInvalidContext, "not a context");
  return static_cast<int>(index);
}

std::vector<std::string> split(const char* list) {
  std::vector<std::string> out;
  std::istringstream in(list ? list : "");
  for (std::string part; std::getline(in, part, ',');)
    if (!part.empty()) out.push_back(part);
  return out;
}

}  // namespace

HIP_API hipInit(unsigned flags) {
  return guarded([&] {
    require(flags == 0, kInvalidValue, "flags must be zero");
    check_device(0);
  });
}

HIP_API hipDriverGetVersion(int* version) {
  return guarded([&] { give(version, kVersion); });
}

HIP_API hipRuntimeGetVersion(int* version) {
  return guarded([&] { give(version, kVersion); });
}

HIP_API hipGetDeviceCount(int* count) {
  return guarded([&] {
    check_device(0);
    give(count, settings().devices);
  });
}

HIP_API hipGetDevice(int* device) {
  return guarded([&] { give(device, current_device()); });
}

HIP_API hipSetDevice(int device) {
  return guarded([&] { set_current_device(device); });
}

HIP_API hipDeviceGet(int* device, int ordinal) {
  return guarded([&] {
    check_device(ordinal);
    give(device, ordinal);
  });
}

HIP_API hipDeviceGetName(char* name, int size, int device) {
  return guarded([&] {
    require(name != nullptr && size > 0, kInvalidValue, "no room for the name");
    std::strncpy(name, properties(device).name, static_cast<std::size_t>(size) - 1);
    name[size - 1] = '\0';
  });
}

HIP_API hipDeviceTotalMem(std::size_t* bytes, int device) {
  return guarded([&] { give(bytes, properties(device).total_global_mem); });
}

HIP_API hipDeviceComputeCapability(int* major, int* minor, int device) {
  return guarded([&] {
    give(major, properties(device).major);
    give(minor, properties(device).minor);
  });
}

HIP_API hipDeviceGetAttribute(int* value, int which, int device) {
  return guarded([&] { give(value, attribute(which, device)); });
}

HIP_API hipGetDevicePropertiesR0600(DeviceProperties* out, int device) {
  return guarded([&] { give(out, properties(device)); });
}

HIP_API hipDeviceGetPCIBusId(char* text, int size, int device) {
  return guarded([&] {
    check_device(device);
    require(text != nullptr && size >= 13, kInvalidValue, "no room for a bus id");
    std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", device);
  });
}

HIP_API hipDeviceCanAccessPeer(int* can, int device, int peer) {
  return guarded([&] {
    check_device(device);
    check_device(peer);
    give(can, 0);
  });
}

HIP_API hipGetDeviceFlags(unsigned* flags) {
  return guarded([&] { give(flags, 0u); });
}

HIP_API hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return guarded([&] {
    give(least, 0);
    give(greatest, 0);
  });
}

HIP_API hipDeviceSynchronize() {
  return guarded([] { synchronize_device(); });
}

HIP_API hipDeviceReset() {
  return guarded([] { synchronize_device(); });
}

HIP_API hipCtxCreate(void** context, unsigned, int device) {
  return guarded([&] {
    set_current_device(device);
    give(context, context_of(device));
  });
}

HIP_API hipCtxDestroy(void* context) {
  return guarded([&] { device_of_context(context); });
}

HIP_API hipCtxGetCurrent(void** context) {
  return guarded([&] { give(context, context_of(current_device())); });
}

HIP_API hipCtxSetCurrent(void* context) {
  return guarded([&] { set_current_device(device_of_context(context)); });
}

HIP_API hipCtxGetDevice(int* device) {
  return guarded([&] { give(device, current_device()); });
}

HIP_API hipCtxSynchronize() {
  return guarded([] { synchronize_device(); });
}

HIP_API hipDevicePrimaryCtxRetain(void** context, int device) {
  return guarded([&] {
    check_device(device);
    give(context, context_of(device));
  });
}

HIP_API hipDevicePrimaryCtxRelease(int device) {
  return guarded([&] { check_device(device); });
}

HIP_API hipGetLastError() { return last_error(true); }

HIP_API hipExtGetLastError() { return last_error(true); }

HIP_API hipPeekAtLastError() { return last_error(false); }

WARPWAVE_API const char* hipGetErrorName(int code) { return error_name(code); }

WARPWAVE_API const char* hipGetErrorString(int code) { return error_text(code); }

HIP_API hipDrvGetErrorName(int code, const char** text) {
  return guarded([&] { give(text, error_name(code)); });
}

HIP_API hipDrvGetErrorString(int code, const char** text) {
  return guarded([&] { give(text, error_text(code)); });
}

/// The full reason for the latest failure in the process: a violation's report, or why a call was refused.
WARPWAVE_API const char* warpwaveSimLastReport() { return last_report(); }

/// Chooses chip, device count, libLLVM, checks to relax (',' between) and the interleaving seed. To be called before
/// the first device is used.
HIP_API warpwaveSimConfigure(const char* target, int devices, const char* llvm, const char* relax, std::uint64_t seed) {
  return guarded([&] {
    const Chip* chip = find_chip(target ? target : "");
    require(chip != nullptr, kInvalidValue, "the simulated targets are gfx942 and gfx950");
    require(devices > 0 && devices <= 16, kInvalidValue, "between 1 and 16 devices");
    const bool same = settings().chip == chip && settings().devices == devices;
    require(same || !devices_in_use(), kInvalidValue, "the simulated devices are in use; choose them before");
    for (const std::string& name : split(relax)) amdsim::check_from_name(name);
    settings() = {chip, devices, llvm ? llvm : "", split(relax), seed};
  });
}
