#include "msgpack.hpp"

#include <bit>

namespace amdsim::object::msgpack {
namespace {

constexpr int kMaxDepth = 32;  // metadata nests four deep; the bound keeps hostile input off the stack

Value value(Reader& in, int depth);

Value array(Reader& in, std::size_t count, int depth) {
  Array out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(value(in, depth + 1));
  return {std::move(out)};
}

Value map(Reader& in, std::size_t count, int depth) {
  Map out;
  for (std::size_t i = 0; i < count; ++i) {
    std::string key = value(in, depth + 1).text();
    out.emplace_back(std::move(key), value(in, depth + 1));
  }
  return {std::move(out)};
}

Value integer(std::int64_t number) { return {number}; }

Value tagged(Reader& in, std::uint8_t tag, int depth) {
  switch (tag) {
    case 0xc0: return {};
    case 0xc2: return {false};
    case 0xc3: return {true};
    case 0xc4:
    case 0xd9: return {in.text(in.u8())};
    case 0xc5:
    case 0xda: return {in.text(in.big_endian<std::uint16_t>())};
    case 0xc6:
    case 0xdb: return {in.text(in.big_endian<std::uint32_t>())};
    case 0xca: return {static_cast<double>(std::bit_cast<float>(in.big_endian<std::uint32_t>()))};
    case 0xcb: return {std::bit_cast<double>(in.big_endian<std::uint64_t>())};
    case 0xcc: return integer(in.u8());
    case 0xcd: return integer(in.big_endian<std::uint16_t>());
    case 0xce: return integer(in.big_endian<std::uint32_t>());
    case 0xcf: return integer(static_cast<std::int64_t>(in.big_endian<std::uint64_t>()));
    case 0xd0: return integer(static_cast<std::int8_t>(in.u8()));
    case 0xd1: return integer(in.big_endian<std::int16_t>());
    case 0xd2: return integer(in.big_endian<std::int32_t>());
    case 0xd3: return integer(in.big_endian<std::int64_t>());
    case 0xdc: return array(in, in.big_endian<std::uint16_t>(), depth);
    case 0xdd: return array(in, in.big_endian<std::uint32_t>(), depth);
    case 0xde: return map(in, in.big_endian<std::uint16_t>(), depth);
    case 0xdf: return map(in, in.big_endian<std::uint32_t>(), depth);
    default: throw ObjectError("metadata: msgpack tag " + std::to_string(tag) + " is not used by AMDGPU notes");
  }
}

Value value(Reader& in, int depth) {
  if (depth > kMaxDepth) throw ObjectError("metadata: msgpack nested too deeply");
  const std::uint8_t tag = in.u8();
  if (tag < 0x80) return integer(tag);
  if (tag < 0x90) return map(in, tag & 0x0f, depth);
  if (tag < 0xa0) return array(in, tag & 0x0f, depth);
  if (tag < 0xc0) return {in.text(tag & 0x1f)};
  if (tag >= 0xe0) return integer(static_cast<std::int8_t>(tag));
  return tagged(in, tag, depth);
}

const Value kNull{};
const Array kEmpty{};

}  // namespace

const Value& Value::operator[](std::string_view key) const {
  if (const auto* entries = std::get_if<Map>(&held))
    for (const auto& [name, entry] : *entries)
      if (name == key) return entry;
  return kNull;
}

std::int64_t Value::integer(std::int64_t otherwise) const {
  if (const auto* flag = std::get_if<bool>(&held)) return *flag;
  const auto* number = std::get_if<std::int64_t>(&held);
  return number ? *number : otherwise;
}

std::string Value::text(std::string otherwise) const {
  const auto* string = std::get_if<std::string>(&held);
  return string ? *string : otherwise;
}

const Array& Value::array() const {
  const auto* items = std::get_if<Array>(&held);
  return items ? *items : kEmpty;
}

Value decode(Bytes data) {
  Reader in(data, "metadata note");
  return value(in, 0);
}

}  // namespace amdsim::object::msgpack
