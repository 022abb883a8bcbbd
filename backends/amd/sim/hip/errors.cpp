#include "errors.hpp"

#include <mutex>

namespace amdsim::hip {
namespace {

thread_local Error last = kSuccess;

std::mutex report_guard;
std::string report;

struct Named {
  Error code;
  const char* name;
  const char* text;
};

constexpr Named kErrors[] = {
    {kSuccess, "hipSuccess", "no error"},
    {kInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {kOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {kNotInitialized, "hipErrorNotInitialized", "initialization error"},
    {kInvalidConfiguration, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {kInvalidSymbol, "hipErrorInvalidSymbol", "invalid device symbol"},
    {kInvalidDevicePointer, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {kInvalidMemcpyDirection, "hipErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {kInvalidDeviceFunction, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {kNoDevice, "hipErrorNoDevice", "no simulated device"},
    {kInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {kInvalidImage, "hipErrorInvalidImage", "device kernel image is invalid"},
    {kInvalidContext, "hipErrorInvalidContext", "invalid device context"},
    {kNoBinaryForGpu, "hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"},
    {kInvalidKernelFile, "hipErrorInvalidKernelFile", "invalid kernel file"},
    {kFileNotFound, "hipErrorFileNotFound", "file not found"},
    {kInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {kNotFound, "hipErrorNotFound", "named symbol not found"},
    {kNotReady, "hipErrorNotReady", "device not ready"},
    {kIllegalAddress, "hipErrorIllegalAddress", "an illegal memory access was encountered (see warpwaveSimLastReport)"},
    {kLaunchOutOfResources, "hipErrorLaunchOutOfResources", "too many resources requested for launch"},
    {kHostMemoryAlreadyRegistered, "hipErrorHostMemoryAlreadyRegistered", "host memory is already registered"},
    {kHostMemoryNotRegistered, "hipErrorHostMemoryNotRegistered", "host memory was not registered"},
    {kLaunchFailure, "hipErrorLaunchFailure", "unspecified launch failure (see warpwaveSimLastReport)"},
    {kNotSupported, "hipErrorNotSupported", "operation not supported by the simulator"},
    {kUnknown, "hipErrorUnknown", "unknown error"},
};

const Named* lookup(int code) {
  for (const Named& e : kErrors)
    if (e.code == code) return &e;
  return nullptr;
}

}  // namespace

const char* error_name(int code) {
  const Named* found = lookup(code);
  return found ? found->name : "hipErrorUnknown";
}

const char* error_text(int code) {
  const Named* found = lookup(code);
  return found ? found->text : "unknown error";
}

Error fail(Error code, const std::string& why) {
  last = code;
  if (code != kNotReady && why != last_report()) set_last_report(std::string(error_name(code)) + ": " + why);
  return code;
}

Error last_error(bool clear) {
  const Error code = last;
  if (clear) last = kSuccess;
  return code;
}

const char* last_report() {
  static thread_local std::string copy;
  const std::lock_guard lock(report_guard);
  copy = report;
  return copy.c_str();
}

void set_last_report(const std::string& text) {
  const std::lock_guard lock(report_guard);
  report = text;
}

}  // namespace amdsim::hip
