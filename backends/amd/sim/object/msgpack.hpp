// The part of MessagePack that AMDGPU metadata notes use (LLVM AMDGPUUsage, "Code Object Metadata").
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bytes.hpp"

namespace amdsim::object::msgpack {

struct Value;
using Array = std::vector<Value>;
using Map = std::vector<std::pair<std::string, Value>>;

struct Value {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Map> held;

  /// The entry `key` of a map; a shared null when this is no map or has no such key.
  const Value& operator[](std::string_view key) const;
  std::int64_t integer(std::int64_t otherwise = 0) const;
  std::string text(std::string otherwise = {}) const;
  const Array& array() const;
};

Value decode(Bytes data);

}  // namespace amdsim::object::msgpack
