// Bounds-checked little-endian reading of untrusted bytes: the base of the ELF, msgpack and DWARF readers.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "../core/error.hpp"

namespace amdsim::object {

/// A code object that cannot be read; the message says which part and why.
struct ObjectError : LoadError {
  using LoadError::LoadError;
};

using Bytes = std::span<const std::uint8_t>;

class Reader {
 public:
  Reader(Bytes data, std::string_view what, std::size_t at = 0) : data_(data), what_(what), at_(at) {}

  std::size_t position() const { return at_; }
  std::size_t size() const { return data_.size(); }
  bool done() const { return at_ >= data_.size(); }
  void seek(std::size_t at) { at_ = at; }
  void align(std::size_t to) { at_ = (at_ + to - 1) / to * to; }

  Bytes bytes(std::size_t count) {
    if (at_ > data_.size() || count > data_.size() - at_)
      throw ObjectError(std::string(what_) + " is truncated: " + std::to_string(count) + " bytes wanted at offset " +
                        std::to_string(at_) + " of " + std::to_string(data_.size()));
    const Bytes part = data_.subspan(at_, count);
    at_ += count;
    return part;
  }

  template <class T>
  T get() {
    T value;
    std::memcpy(&value, bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::uint8_t u8() { return get<std::uint8_t>(); }
  std::uint16_t u16() { return get<std::uint16_t>(); }
  std::uint32_t u32() { return get<std::uint32_t>(); }
  std::uint64_t u64() { return get<std::uint64_t>(); }

  template <class T>
  T big_endian() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) value = value << 8 | u8();
    return static_cast<T>(value);
  }

  std::string text(std::size_t count) {
    const Bytes part = bytes(count);
    return {part.begin(), part.end()};
  }
  std::string c_string() {
    std::string out;
    for (char c = static_cast<char>(u8()); c != 0; c = static_cast<char>(u8())) out += c;
    return out;
  }

  // LEB128 (DWARF 5, section 7.6)
  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t byte = u8();
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return value;
    }
    throw ObjectError(std::string(what_) + ": LEB128 number of more than 64 bits");
  }
  std::int64_t sleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64;) {
      const std::uint8_t byte = u8();
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      shift += 7;
      if (byte & 0x80) continue;
      if (shift < 64 && (byte & 0x40)) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
    throw ObjectError(std::string(what_) + ": LEB128 number of more than 64 bits");
  }

 private:
  Bytes data_;
  std::string_view what_;
  std::size_t at_;
};

}  // namespace amdsim::object
