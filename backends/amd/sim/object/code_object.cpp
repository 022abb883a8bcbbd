#include "code_object.hpp"

#include <algorithm>
#include <cctype>

#include "bundle.hpp"
#include "msgpack.hpp"

namespace amdsim::object {
namespace {

constexpr std::uint16_t kMachineAmdgpu = 224;
constexpr std::uint8_t kOsAbiHsa = 64;
constexpr std::uint32_t kMetadataNote = 32;  // NT_AMDGPU_METADATA

// EF_AMDGPU_MACH values (LLVM AMDGPUUsage, "AMDGPU ELF Header e_flags")
std::string processor(std::uint32_t flags) {
  switch (flags & 0xff) {
    case 0x4c: return "gfx942";
    case 0x4f: return "gfx950";
    default: return {};
  }
}

std::string feature(const char* name, std::uint32_t setting) {
  if (setting == 2) return std::string(":") + name + "-";
  if (setting == 3) return std::string(":") + name + "+";
  return {};
}

void identify(CodeObject& object, const std::string& metadata_target) {
  const elf::File& file = object.file;
  if (file.machine != kMachineAmdgpu || file.os_abi != kOsAbiHsa) throw ObjectError("not an AMDGPU HSA code object");
  if (file.abi_version < 2 || file.abi_version > 4)
    throw ObjectError("code object with ELF ABI version " + std::to_string(file.abi_version) +
                      "; versions 4 to 6 (ABI 2 to 4) are read");
  if (file.type != 3) throw ObjectError("a relocatable object: link it first (ld.lld -shared)");
  object.version = file.abi_version + 2u;
  object.target = processor(file.flags);
  if (object.target.empty())
    throw ObjectError("code object for " + (metadata_target.empty() ? "another processor" : metadata_target) +
                      "; gfx942 and gfx950 are simulated");
  object.target_id = object.target + feature("sramecc", file.flags >> 10 & 3) + feature("xnack", file.flags >> 8 & 3);
}

msgpack::Value metadata(const elf::File& file) {
  for (const elf::Note& note : file.notes)
    if (note.owner == "AMDGPU" && note.type == kMetadataNote) return msgpack::decode(note.data);
  return {};
}

std::uint32_t number(const msgpack::Value& value, std::int64_t otherwise = 0) {
  return static_cast<std::uint32_t>(value.integer(otherwise));
}

std::vector<Argument> arguments(const msgpack::Value& described) {
  std::vector<Argument> out;
  for (const msgpack::Value& a : described[".args"].array()) {
    out.push_back({a[".name"].text(), a[".value_kind"].text(), number(a[".offset"]), number(a[".size"])});
    if (!is_label(out.back().kind)) throw ObjectError("an argument of " + described[".name"].text() + " has no kind");
  }
  std::stable_sort(out.begin(), out.end(), [](const Argument& a, const Argument& b) { return a.offset < b.offset; });
  return out;
}

void describe(Kernel& kernel, const msgpack::Value& described) {
  kernel.arguments = arguments(described);
  kernel.kernarg_align = number(described[".kernarg_segment_align"], 8);
  kernel.max_flat_workgroup_size = number(described[".max_flat_workgroup_size"], 1024);
  kernel.vgpr_count = number(described[".vgpr_count"]);
  kernel.agpr_count = number(described[".agpr_count"]);
  kernel.sgpr_count = number(described[".sgpr_count"]);
  kernel.vgpr_spills = number(described[".vgpr_spill_count"]);
  kernel.sgpr_spills = number(described[".sgpr_spill_count"]);
  // Hand-written objects may leave the descriptor's size fields zero; the runtime goes by the metadata.
  kernel.descriptor.kernarg_size = number(described[".kernarg_segment_size"], kernel.descriptor.kernarg_size);
  kernel.descriptor.group_segment = number(described[".group_segment_fixed_size"], kernel.descriptor.group_segment);
  kernel.descriptor.private_segment =
      number(described[".private_segment_fixed_size"], kernel.descriptor.private_segment);
  if (number(described[".wavefront_size"], 64) != 64) throw ObjectError("kernel " + kernel.name + " is not wave64");
}

Bytes at_address(const elf::File& file, std::uint64_t address, std::uint64_t size) {
  for (const elf::Section& s : file.sections)
    if (s.allocated() && address >= s.address && size <= s.size && address - s.address <= s.size - size)
      return Reader(s.bytes, s.name, address - s.address).bytes(size);
  throw ObjectError("address " + std::to_string(address) + " is in no section of the code object");
}

std::vector<Kernel> kernels(const elf::File& file, const msgpack::Value& meta) {
  std::vector<Kernel> out;
  for (const elf::Symbol& s : file.symbols) {
    if (!s.name.ends_with(".kd")) continue;
    Kernel k;
    k.name = s.name.substr(0, s.name.size() - 3);
    if (!is_label(k.name)) throw ObjectError("a kernel's name is not one that assembly text can hold");
    k.descriptor = descriptor(at_address(file, s.address, 64));
    k.entry = s.address + static_cast<std::uint64_t>(k.descriptor.entry_offset);
    for (const msgpack::Value& described : meta["amdhsa.kernels"].array())
      if (described[".symbol"].text() == s.name) describe(k, described);
    out.push_back(std::move(k));
  }
  return out;
}

template <class T>
void store(std::vector<std::uint8_t>& image, std::uint64_t at, T value) {
  if (at > image.size() || sizeof(T) > image.size() - at) throw ObjectError("relocation outside of the image");
  std::memcpy(image.data() + at, &value, sizeof(T));
}

// R_AMDGPU_* (LLVM AMDGPUUsage, "Relocation Records"); only these are left in a linked object.
void relocate(std::vector<std::uint8_t>& image, const elf::Relocation& r, std::uint64_t base) {
  const std::uint64_t value = base + r.symbol_address + static_cast<std::uint64_t>(r.addend);
  switch (r.type) {
    case 1:
    case 6: return store(image, r.address, static_cast<std::uint32_t>(value));
    case 2: return store(image, r.address, static_cast<std::uint32_t>(value >> 32));
    case 3:
    case 13: return store(image, r.address, value);
    default: throw ObjectError("dynamic relocation of type " + std::to_string(r.type));
  }
}

}  // namespace

const Kernel* CodeObject::kernel(std::string_view name) const {
  auto found = std::find_if(kernels.begin(), kernels.end(), [&](const Kernel& k) { return k.name == name; });
  return found == kernels.end() ? nullptr : &*found;
}

const elf::Symbol* CodeObject::symbol(std::string_view name) const {
  auto found = std::find_if(file.symbols.begin(), file.symbols.end(),
                            [&](const elf::Symbol& s) { return s.name == name && s.section != 0; });
  return found == file.symbols.end() ? nullptr : &*found;
}

std::uint64_t CodeObject::image_size() const {
  std::uint64_t end = 0;
  for (const elf::Section& s : file.sections)
    if (s.allocated()) end = std::max(end, s.address + s.size);
  return end;
}

bool is_label(std::string_view name) {
  auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '$' || c == '@'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), fits);
}

CodeObject read(std::vector<std::uint8_t> data, std::string_view target) {
  const Bytes picked = unbundle(data, target);
  CodeObject object;
  object.bytes = std::make_shared<const std::vector<std::uint8_t>>(picked.begin(), picked.end());
  object.file = elf::read(*object.bytes);
  const msgpack::Value meta = metadata(object.file);
  identify(object, meta["amdhsa.target"].text());
  object.kernels = kernels(object.file, meta);
  object.lines = source_lines(object.file);
  return object;
}

std::vector<std::uint8_t> load_image(const CodeObject& object, std::uint64_t base) {
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 32;
  if (object.image_size() > kLargest) throw ObjectError("code object whose image exceeds 4 GiB");
  std::vector<std::uint8_t> image(object.image_size());
  for (const elf::Section& s : object.file.sections)
    if (s.allocated() && !s.bytes.empty())
      std::copy(s.bytes.begin(), s.bytes.end(), image.begin() + static_cast<std::ptrdiff_t>(s.address));
  for (const elf::Relocation& r : object.file.relocations) relocate(image, r, base);
  return image;
}

}  // namespace amdsim::object
