#include "bundle.hpp"

#include <algorithm>

#include "elf.hpp"

namespace amdsim::object {
namespace {

constexpr std::string_view kMagic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view kCompressed = "CCOB";
constexpr std::size_t kLargestBundleHeader = 4096;  // a bundle pads its header to a page

bool starts_with(Bytes data, std::string_view magic) {
  return data.size() >= magic.size() && std::memcmp(data.data(), magic.data(), magic.size()) == 0;
}

/// "hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-" -> "gfx942"; empty for the host's entry.
std::string processor(const std::string& id) {
  const std::size_t start = id.find("gfx");
  if (start == std::string::npos) return {};
  return id.substr(start, id.find(':', start) - start);
}

}  // namespace

Bytes unbundle(Bytes data, std::string_view target) {
  if (elf::is_elf(data)) return data;
  if (starts_with(data, kCompressed))
    throw ObjectError(
        "compressed offload bundle: rebuild with --no-offload-compress, or extract the code object "
        "with clang-offload-bundler");
  if (!starts_with(data, kMagic)) throw ObjectError("neither an ELF code object nor a clang offload bundle");
  Reader in(data, "offload bundle", kMagic.size());
  Bytes found;
  std::string present;
  int matches = 0;
  for (std::uint64_t count = in.u64(); count > 0; --count) {
    const std::uint64_t offset = in.u64(), size = in.u64();
    const std::string cpu = processor(in.text(in.u64()));
    if (cpu.empty()) continue;
    present += (present.empty() ? "" : ", ") + cpu;
    if (!target.empty() && cpu != target) continue;
    found = Reader(data, "offload bundle entry", offset).bytes(size);
    ++matches;
  }
  if (matches == 1) return found;
  const std::string wanted = target.empty() ? "one device entry (name the target)" : std::string(target);
  throw ObjectError("offload bundle holds [" + present + "], wanted " + wanted);
}

std::size_t extent(const std::uint8_t* start) {
  const Bytes head(start, 64);
  if (elf::is_elf(head)) {
    Reader in(head, "ELF header", 40);
    const std::uint64_t table = in.u64();
    in.seek(58);
    const std::uint16_t entry = in.u16(), count = in.u16();
    return elf::extent(Bytes(start, table + std::uint64_t{entry} * count));
  }
  if (!starts_with(head, kMagic)) throw ObjectError("neither an ELF code object nor a clang offload bundle");
  std::uint64_t end = 0;
  Reader in(Bytes(start, kLargestBundleHeader), "offload bundle", kMagic.size());
  for (std::uint64_t count = in.u64(); count > 0; --count) {
    const std::uint64_t offset = in.u64(), size = in.u64();
    end = std::max(end, offset + size);
    in.bytes(in.u64());
  }
  return end;
}

}  // namespace amdsim::object
