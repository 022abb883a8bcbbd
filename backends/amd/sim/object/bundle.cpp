#include "bundle.hpp"

#include "elf.hpp"

namespace amdsim::object {
namespace {

constexpr std::string_view kMagic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view kCompressed = "CCOB";

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
    throw ObjectError("compressed offload bundle: rebuild with --no-offload-compress, or extract the code object "
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

}  // namespace amdsim::object
