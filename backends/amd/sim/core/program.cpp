#include "program.hpp"

#include <algorithm>

#include "decode.hpp"
#include "error.hpp"

namespace amdsim {
namespace {

i64 get(const KernelDirectives& d, const char* key, i64 fallback) {
  auto it = d.values.find(key);
  return it == d.values.end() ? fallback : it->second;
}

u32 round_up(i64 value, i64 granule) { return static_cast<u32>((value + granule - 1) / granule * granule); }

// Registers are allocated in eights from one pool; accum_offset is where AGPRs begin (AMDGPUUsage).
void set_registers(Kernel& k, const KernelDirectives& d) {
  const i64 total = std::max<i64>(1, get(d, "next_free_vgpr", 1));
  k.accum_offset = static_cast<u32>(get(d, "accum_offset", round_up(std::min<i64>(total, 256), 4)));
  const u32 allocated = round_up(total, 8);
  k.vgprs = std::min(allocated, k.accum_offset);
  k.agprs = allocated > k.accum_offset ? allocated - k.accum_offset : 0;
  k.sgprs = std::min<u32>(102, round_up(std::max<i64>(1, get(d, "next_free_sgpr", 1)) + 6, 16));
}

void set_mode(Kernel& k, const KernelDirectives& d) {
  k.round32 = static_cast<u8>(get(d, "float_round_mode_32", 0));
  k.round64 = static_cast<u8>(get(d, "float_round_mode_16_64", 0));
  k.denorm32 = static_cast<u8>(get(d, "float_denorm_mode_32", 0));
  k.denorm64 = static_cast<u8>(get(d, "float_denorm_mode_16_64", 3));
  k.dx10_clamp = get(d, "dx10_clamp", 1);
  k.ieee = get(d, "ieee_mode", 1);
  k.fp16_ovfl = get(d, "fp16_overflow", 0);
}

Kernel make_kernel(const std::string& name, const KernelDirectives& d) {
  Kernel k;
  k.name = name;
  k.group_segment = static_cast<u32>(get(d, "group_segment_fixed_size", 0));
  k.private_segment = static_cast<u32>(get(d, "private_segment_fixed_size", 0));
  k.kernarg_size = static_cast<u32>(get(d, "kernarg_size", 0));
  k.dispatch_ptr = get(d, "user_sgpr_dispatch_ptr", 0);
  k.queue_ptr = get(d, "user_sgpr_queue_ptr", 0);
  k.kernarg_ptr = get(d, "user_sgpr_kernarg_segment_ptr", 0);
  k.dispatch_id = get(d, "user_sgpr_dispatch_id", 0);
  k.private_size = get(d, "user_sgpr_private_segment_size", 0);
  k.preload_length = static_cast<u32>(get(d, "user_sgpr_kernarg_preload_length", 0));
  k.preload_offset = static_cast<u32>(get(d, "user_sgpr_kernarg_preload_offset", 0));
  const i64 implied = 2 * (k.dispatch_ptr + k.queue_ptr + k.kernarg_ptr + k.dispatch_id) + k.private_size + k.preload_length;
  k.user_sgprs = static_cast<u32>(get(d, "user_sgpr_count", implied));
  k.id_x = get(d, "system_sgpr_workgroup_id_x", 1);
  k.id_y = get(d, "system_sgpr_workgroup_id_y", 0);
  k.id_z = get(d, "system_sgpr_workgroup_id_z", 0);
  k.group_info = get(d, "system_sgpr_workgroup_info", 0);
  k.workitem_dims = static_cast<u32>(get(d, "system_vgpr_workitem_id", 0));
  k.dynamic_stack = get(d, "uses_dynamic_stack", 0);
  k.scratch_enabled = get(d, "enable_private_segment", 0);
  set_registers(k, d);
  set_mode(k, d);
  return k;
}

// From a kernel's entry to the next one's; all code if it calls functions.
std::pair<u32, u32> code_of(const Program& program, const Kernel& kernel) {
  const u32 size = static_cast<u32>(program.code.size());
  u32 end = size;
  for (const auto& [name, other] : program.kernels)
    if (other.entry > kernel.entry) end = std::min(end, other.entry);
  const auto calls = [](const Inst& i) { return std::string_view(i.desc->name).starts_with("s_swappc"); };
  const bool leaves = std::any_of(program.code.begin() + kernel.entry, program.code.begin() + end, calls);
  return leaves ? std::pair{0u, size} : std::pair{kernel.entry, end};
}

// Both files are parts of one allocation, AGPRs from accum_offset on. Code without AGPRs may use all of it as VGPRs, as
// hand-written kernels do; with AGPRs, a VGPR beyond accum_offset would be one of them.
void widen_vgprs(const Program& program, Kernel& kernel) {
  const auto [begin, end] = code_of(program, kernel);
  const auto uses_agprs = [](const Inst& i) { return (i.need >> 16 & 0x7fff) != 0; };
  if (std::any_of(program.code.begin() + begin, program.code.begin() + end, uses_agprs)) return;
  const u32 vgprs = std::min<u32>(kAgprRow, kernel.vgprs + kernel.agprs);
  kernel.agprs -= vgprs - kernel.vgprs, kernel.vgprs = vgprs;
}

std::string target_of(const AsmModule& module, std::string_view requested) {
  std::string named;
  for (const Target& t : kTargets)
    if (module.target.find(t.name) != std::string::npos) named = t.name;
  if (requested.empty()) {
    if (named.empty()) throw LoadError("the assembly names no target; pass target=");
    return named;
  }
  if (!named.empty() && named != requested)
    throw LoadError("the assembly is for " + named + ", not " + std::string(requested));
  return std::string(requested);
}

void place_lds(AsmModule& module, Decoder& decoder) {
  u64 at = 0;
  for (auto& [name, symbol] : module.lds) {
    at = (at + symbol.align - 1) / symbol.align * symbol.align;
    decoder.lds_offset[name] = at;
    at += symbol.size;
  }
}

void apply_fixups(Program& program) {
  for (DataSection& section : program.sections)
    for (const Fixup& fixup : section.fixups) {
      const u64 value = program.symbol_address(fixup.symbol) + static_cast<u64>(fixup.addend);
      std::memcpy(section.bytes.data() + fixup.offset, &value, static_cast<std::size_t>(fixup.bytes));
    }
}

}  // namespace

const Target* find_target(std::string_view name) {
  for (const Target& t : kTargets)
    if (t.name == name) return &t;
  return nullptr;
}

std::unique_ptr<Program> Program::from_text(std::string_view text, std::string_view target) {
  AsmModule module = parse_assembly(text);
  auto program = std::make_unique<Program>();
  const std::string name = target_of(module, target);
  program->target = find_target(name);
  if (!program->target) throw LoadError("unknown target '" + name + "'; known: gfx942, gfx950");
  program->files = std::move(module.files);
  program->labels = std::move(module.labels);
  program->sections = std::move(module.sections);
  program->data_symbols = std::move(module.data_symbols);
  program->metadata = std::move(module.metadata);
  for (std::size_t i = 0; i < program->sections.size(); ++i) program->section_base.push_back(kDataBase + (u64(i) << 32));
  const bool addressed = !module.insts.empty() && module.insts[0].address.has_value();
  for (u32 i = 0; addressed && i < module.insts.size(); ++i)
    if (module.insts[i].address) program->by_address[*module.insts[i].address] = i;

  Decoder decoder{*program, module.lds, {}, {}};
  place_lds(module, decoder);
  program->code.reserve(module.insts.size());
  for (const AsmInst& inst : module.insts)
    program->code.push_back(decoder.decode(inst, static_cast<u32>(program->code.size())));
  apply_fixups(*program);
  for (const auto& [kernel, directives] : module.kernels) {
    auto entry = program->labels.find(kernel);
    if (entry == program->labels.end()) throw LoadError("kernel '" + kernel + "' has no code label");
    program->kernels[kernel] = make_kernel(kernel, directives);
    program->kernels[kernel].entry = entry->second;
  }
  for (auto& [name, kernel] : program->kernels) widen_vgprs(*program, kernel);
  return program;
}

u32 Program::index_of_address(u64 address) const {
  if (!by_address.empty()) {
    auto it = by_address.find(address);
    if (it != by_address.end()) return it->second;
  } else if (address >= kCodeBase && (address - kCodeBase) % 8 == 0 && (address - kCodeBase) / 8 < code.capacity()) {
    return static_cast<u32>((address - kCodeBase) / 8);
  }
  throw LoadError("address " + std::to_string(address) + " is not an instruction");
}

std::string Program::source_of(const Inst& inst) const {
  if (inst.loc_file < 0 || static_cast<std::size_t>(inst.loc_file) >= files.size() || inst.loc_line == 0) return {};
  return files[static_cast<std::size_t>(inst.loc_file)] + ":" + std::to_string(inst.loc_line);
}

u64 Program::symbol_address(const std::string& name) const {
  if (auto it = data_symbols.find(name); it != data_symbols.end())
    return section_base[static_cast<std::size_t>(it->second.section)] + it->second.offset;
  if (auto it = labels.find(name); it != labels.end()) return by_address.empty() ? kCodeBase + 8ull * it->second : code[it->second].address;
  return 0;
}

}  // namespace amdsim
