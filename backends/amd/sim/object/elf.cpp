#include "elf.hpp"

#include <algorithm>

namespace amdsim::object::elf {
namespace {

constexpr std::uint32_t kSymtab = 2, kRela = 4, kNote = 7, kNobits = 8, kDynsym = 11;

struct Header {
  std::uint64_t section_offset = 0;
  std::uint16_t section_count = 0, section_names = 0;
};

Header header(Bytes data, File& file) {
  Reader in(data, "ELF header");
  const Bytes ident = in.bytes(16);
  if (ident[4] != 2 || ident[5] != 1) throw ObjectError("not a 64-bit little-endian ELF file");
  file.os_abi = ident[7];
  file.abi_version = ident[8];
  file.type = in.u16();
  file.machine = in.u16();
  in.seek(40);
  Header out;
  out.section_offset = in.u64();
  in.seek(48);
  file.flags = in.u32();
  in.seek(60);
  out.section_count = in.u16();
  out.section_names = in.u16();
  return out;
}

Bytes range(Bytes data, std::uint64_t offset, std::uint64_t size, std::string_view what) {
  Reader in(data, what, offset);
  return in.bytes(size);
}

std::vector<std::uint32_t> sections(Bytes data, const Header& head, File& file) {
  Reader in(data, "ELF section table", head.section_offset);
  std::vector<std::uint32_t> names;
  for (unsigned i = 0; i < head.section_count; ++i) {
    Section s;
    names.push_back(in.u32());
    s.type = in.u32();
    s.flags = in.u64();
    s.address = in.u64();
    const std::uint64_t offset = in.u64();
    s.size = in.u64();
    s.link = in.u32();
    in.u32();
    s.alignment = in.u64();
    in.u64();
    if (s.type != kNobits && s.type != 0) s.bytes = range(data, offset, s.size, "ELF section");
    file.sections.push_back(s);
  }
  return names;
}

std::string string_at(const Section& table, std::uint64_t offset) {
  Reader in(table.bytes, "ELF string table", offset);
  return in.c_string();
}

const Section& linked(const File& file, const Section& from) {
  if (from.link >= file.sections.size()) throw ObjectError("ELF section " + from.name + " links to no section");
  return file.sections[from.link];
}

std::vector<Symbol> symbols(const File& file, const Section& table) {
  const Section& strings = linked(file, table);
  Reader in(table.bytes, "ELF symbol table");
  std::vector<Symbol> out;
  while (!in.done()) {
    Symbol s;
    s.name = string_at(strings, in.u32());
    s.type = in.u8() & 0x0f;
    in.u8();
    s.section = in.u16();
    s.address = in.u64();
    s.size = in.u64();
    out.push_back(s);
  }
  return out;
}

void relocations(File& file, const Section& table) {
  const std::vector<Symbol> names = symbols(file, linked(file, table));
  Reader in(table.bytes, "ELF relocation table");
  while (!in.done()) {
    Relocation r;
    r.address = in.u64();
    const std::uint64_t info = in.u64();
    r.type = static_cast<std::uint32_t>(info);
    r.addend = in.get<std::int64_t>();
    const std::uint64_t symbol = info >> 32;
    if (symbol >= names.size() && symbol != 0) throw ObjectError("ELF relocation names no symbol");
    if (symbol != 0) r.symbol_address = names[symbol].address;
    file.relocations.push_back(r);
  }
}

void notes(File& file, const Section& table) {
  Reader in(table.bytes, "ELF note");
  while (!in.done()) {
    Note n;
    const std::uint32_t name_size = in.u32(), data_size = in.u32();
    n.type = in.u32();
    n.owner = in.text(name_size);
    while (!n.owner.empty() && n.owner.back() == '\0') n.owner.pop_back();
    in.align(4);
    n.data = in.bytes(data_size);
    in.align(4);
    file.notes.push_back(n);
  }
}

}  // namespace

const Section* File::section(std::string_view name) const {
  for (const Section& s : sections)
    if (s.name == name) return &s;
  return nullptr;
}

bool is_elf(Bytes data) {
  return data.size() >= 64 && std::memcmp(data.data(),
                                          "\x7f"
                                          "ELF",
                                          4) == 0;
}

std::size_t extent(Bytes data) {
  File unused;
  const Header head = header(data, unused);
  std::uint64_t end = head.section_offset + std::uint64_t{64} * head.section_count;
  for (unsigned i = 0; i < head.section_count; ++i) {
    Reader in(data, "ELF section table", head.section_offset + 64 * i + 4);
    const std::uint32_t type = in.u32();
    in.seek(head.section_offset + 64 * i + 24);
    const std::uint64_t offset = in.u64(), size = in.u64();
    if (type != kNobits) end = std::max(end, offset + size);
  }
  return end;
}

File read(Bytes data) {
  if (!is_elf(data)) throw ObjectError("not an ELF file");
  File file;
  const Header head = header(data, file);
  const std::vector<std::uint32_t> names = sections(data, head, file);
  if (head.section_names >= file.sections.size()) throw ObjectError("ELF file without section names");
  for (std::size_t i = 0; i < names.size(); ++i)
    file.sections[i].name = string_at(file.sections[head.section_names], names[i]);
  const std::uint32_t wanted = file.section(".symtab") ? kSymtab : kDynsym;  // a stripped object keeps .dynsym
  for (const Section& s : file.sections) {
    if (s.type == wanted) file.symbols = symbols(file, s);
    if (s.type == kRela && s.allocated()) relocations(file, s);
    if (s.type == kNote) notes(file, s);
  }
  return file;
}

}  // namespace amdsim::object::elf
