#include "listing.hpp"

#include <cctype>
#include <cstdio>
#include <map>
#include <optional>
#include <sstream>

namespace amdsim::object {
namespace {

std::string local_label(std::uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof text, ".L%llx", static_cast<unsigned long long>(address));
  return text;
}

bool is_branch(const std::string& text) {
  return text.starts_with("s_branch") || text.starts_with("s_cbranch_") || text.starts_with("s_call_b64");
}

// SOPP and SOPK branches: the target is the next instruction plus four times the signed low half
// (CDNA4 ISA, section 4 "Program Flow Control").
std::optional<std::uint64_t> branch_target(const Instruction& instruction, Bytes code) {
  if (!is_branch(instruction.text)) return std::nullopt;
  std::int16_t words;
  std::memcpy(&words, code.data(), sizeof words);
  return instruction.address + 4 + static_cast<std::uint64_t>(static_cast<std::int64_t>(words) * 4);
}

std::string with_label(const std::string& text, const std::string& label) {
  const std::size_t operand = text.find_last_of(" ,");
  return text.substr(0, operand + 1) + label;
}

using Labels = std::map<std::uint64_t, std::string>;

Labels function_labels(const CodeObject& object) {
  Labels labels;
  for (const elf::Symbol& s : object.file.symbols)
    if (s.type == 2 && is_label(s.name)) labels.emplace(s.address, s.name);  // STT_FUNC
  for (const Kernel& k : object.kernels) labels.insert_or_assign(k.entry, k.name);
  return labels;
}

void section_lines(const elf::Section& section, const Disassembler& tool, Labels& labels, std::vector<Line>& out) {
  for (const Instruction& i : tool.run(section.bytes, section.address)) {
    Line line{i.address, i.size, {}, i.text};
    if (const auto target = branch_target(i, section.bytes.subspan(i.address - section.address)))
      line.text = with_label(i.text, labels.emplace(*target, local_label(*target)).first->second);
    out.push_back(std::move(line));
  }
}

/// A path as it can stand between quotes.
std::string quotable(std::string path) {
  for (char& c : path)
    if (!std::isprint(static_cast<unsigned char>(c)) || c == '"') c = '?';
  return path;
}

/// Writes `.file` and `.loc` as the source line changes.
class Locations {
 public:
  explicit Locations(const std::vector<SourceLine>& lines) : lines_(lines) {}

  void write(std::ostream& out, std::uint64_t address) {
    const SourceLine* now = line_at(lines_, address);
    if (!now || now == last_) return;
    last_ = now;
    const auto [entry, added] = files_.emplace(now->file, files_.size() + 1);
    if (added) out << "\t.file\t" << entry->second << " \"" << quotable(now->file) << "\"\n";
    out << "\t.loc\t" << entry->second << ' ' << now->line << ' ' << now->column << '\n';
  }

 private:
  const std::vector<SourceLine>& lines_;
  const SourceLine* last_ = nullptr;
  std::map<std::string, std::size_t> files_;
};

std::string address_comment(std::uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof text, " // %012llX:", static_cast<unsigned long long>(address));
  return text;
}

void write_kernel(std::ostream& out, const Kernel& kernel) {
  out << "\t.section\t.rodata,\"a\",@progbits\n\t.amdhsa_kernel " << kernel.name << '\n';
  for (const auto& [name, value] : directives(kernel.descriptor)) out << "\t\t.amdhsa_" << name << ' ' << value << '\n';
  out << "\t.end_amdhsa_kernel\n";
}

void write_metadata(std::ostream& out, const Kernel& kernel) {
  out << "  - .agpr_count: " << kernel.agpr_count << "\n    .args:\n";
  for (const Argument& a : kernel.arguments) {
    out << "      - .offset: " << a.offset << "\n        .size: " << a.size << "\n        .value_kind: " << a.kind
        << '\n';
    if (is_label(a.name)) out << "        .name: " << a.name << '\n';
  }
  out << "    .group_segment_fixed_size: " << kernel.descriptor.group_segment
      << "\n    .kernarg_segment_align: " << kernel.kernarg_align
      << "\n    .kernarg_segment_size: " << kernel.descriptor.kernarg_size
      << "\n    .max_flat_workgroup_size: " << kernel.max_flat_workgroup_size << "\n    .name: " << kernel.name
      << "\n    .private_segment_fixed_size: " << kernel.descriptor.private_segment
      << "\n    .sgpr_count: " << kernel.sgpr_count << "\n    .sgpr_spill_count: " << kernel.sgpr_spills
      << "\n    .symbol: " << kernel.name << ".kd\n    .vgpr_count: " << kernel.vgpr_count
      << "\n    .vgpr_spill_count: " << kernel.vgpr_spills << "\n    .wavefront_size: 64\n";
}

}  // namespace

std::vector<Line> disassemble(const CodeObject& object, const LlvmLibrary& library) {
  const Disassembler tool(library, object.target);
  Labels labels = function_labels(object);
  std::vector<Line> lines;
  for (const elf::Section& s : object.file.sections)
    if (s.executable() && !s.bytes.empty()) section_lines(s, tool, labels, lines);
  for (Line& line : lines)
    if (auto found = labels.find(line.address); found != labels.end()) line.label = found->second;
  return lines;
}

std::string assembly(const CodeObject& object, const std::vector<Line>& lines, std::uint64_t base) {
  std::ostringstream out;
  Locations locations(object.lines);
  out << "\t.amdgcn_target \"amdgcn-amd-amdhsa--" << object.target_id << "\"\n\t.amdhsa_code_object_version "
      << object.version << "\n\t.text\n";
  for (const Line& line : lines) {
    if (!line.label.empty()) out << line.label << ":\n";
    locations.write(out, line.address);
    out << '\t' << line.text << address_comment(base + line.address) << '\n';
  }
  for (const Kernel& kernel : object.kernels) write_kernel(out, kernel);
  out << "\t.amdgpu_metadata\n---\namdhsa.kernels:\n";
  for (const Kernel& kernel : object.kernels) write_metadata(out, kernel);
  out << "amdhsa.target: amdgcn-amd-amdhsa--" << object.target_id << "\namdhsa.version:\n  - 1\n  - "
      << object.version - 4 << "\n...\n\t.end_amdgpu_metadata\n";
  return out.str();
}

}  // namespace amdsim::object
