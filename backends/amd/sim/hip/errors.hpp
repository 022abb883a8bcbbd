// The calling thread's last error, and the wrapper that turns exceptions into HIP error codes.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "api.hpp"

namespace amdsim::hip {

/// Thrown inside the runtime; an API function returns its code.
struct HipError : std::runtime_error {
  HipError(Error code, const std::string& why) : std::runtime_error(why), code(code) {}
  Error code;
};

inline void require(bool condition, Error code, const char* why) {
  if (!condition) throw HipError(code, why);
}

/// Stores a result where the caller asked for it.
template <class T>
void give(T* out, T value) {
  require(out != nullptr, kInvalidValue, "null output pointer");
  *out = value;
}

const char* error_name(int code);
const char* error_text(int code);

/// Sets the thread's last error and the process's last report.
Error fail(Error code, const std::string& why);
Error last_error(bool clear);

/// Why the most recent call or launch failed, in full; valid until this thread asks again.
const char* last_report();
void set_last_report(const std::string& text);

template <class Body>
Error guarded(Body&& body) {
  try {
    body();
    return kSuccess;
  } catch (const HipError& error) {
    return fail(error.code, error.what());
  } catch (const std::bad_alloc&) {
    return fail(kOutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    return fail(kUnknown, error.what());
  }
}

}  // namespace amdsim::hip
