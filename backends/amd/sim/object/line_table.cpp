#include "line_table.hpp"

#include <algorithm>

namespace amdsim::object {
namespace {

// DW_LNCT_* content types and DW_FORM_* forms that appear in line tables
constexpr std::uint64_t kPath = 1, kDirectory = 2;
constexpr std::uint64_t kFormBlock = 0x09, kFormData1 = 0x0b, kFormData2 = 0x05, kFormData4 = 0x06, kFormData8 = 0x07,
                        kFormData16 = 0x1e, kFormUdata = 0x0f, kFormString = 0x08, kFormLineStrp = 0x1f,
                        kFormStrp = 0x0e;

struct Entry {
  std::string path;
  std::uint64_t directory = 0;
};

struct Program {
  std::uint16_t version = 0;
  std::uint8_t min_length = 1, line_range = 1, opcode_base = 1;
  std::int8_t line_base = 0;
  std::vector<std::uint8_t> lengths;  // operand counts of the standard opcodes
  std::vector<std::string> directories;
  std::vector<Entry> files;
};

class Unit {
 public:
  Unit(const elf::File& file, Bytes data) : file_(file), in_(data, ".debug_line") {}

  void run(std::vector<SourceLine>& rows) {
    read_header();
    while (!in_.done()) step(rows);
  }

 private:
  struct State {
    std::uint64_t address = 0, file = 1;
    std::uint32_t line = 1, column = 0;
  };

  void read_header() {
    program_.version = in_.u16();
    if (program_.version < 2 || program_.version > 5)
      throw ObjectError(".debug_line of DWARF version " + std::to_string(program_.version));
    if (program_.version >= 5) in_.u16();  // address size, segment selector size
    const std::uint32_t header_length = in_.u32();
    const std::size_t start = in_.position() + header_length;
    program_.min_length = in_.u8();
    if (program_.version >= 4) in_.u8();  // operations per instruction: 1 on AMDGPU
    in_.u8();                             // default_is_stmt
    program_.line_base = static_cast<std::int8_t>(in_.u8());
    program_.line_range = in_.u8();
    program_.opcode_base = in_.u8();
    if (program_.line_range == 0) throw ObjectError(".debug_line with line_range 0");
    for (unsigned i = 1; i < program_.opcode_base; ++i) program_.lengths.push_back(in_.u8());
    program_.version >= 5 ? tables_v5() : tables_v4();
    in_.seek(start);
  }

  void tables_v4() {
    program_.directories.emplace_back();  // directory 0 is the compilation directory
    for (std::string d = in_.c_string(); !d.empty(); d = in_.c_string()) program_.directories.push_back(d);
    program_.files.emplace_back();  // files count from 1
    for (std::string f = in_.c_string(); !f.empty(); f = in_.c_string()) {
      program_.files.push_back({f, in_.uleb()});
      in_.uleb();
      in_.uleb();
    }
  }

  void tables_v5() {
    for (Entry& e : entries()) program_.directories.push_back(std::move(e.path));
    program_.files = entries();
  }

  std::vector<Entry> entries() {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> format(in_.u8());
    for (auto& [content, form] : format) {
      content = in_.uleb();
      form = in_.uleb();
    }
    std::vector<Entry> out;
    for (std::uint64_t count = in_.uleb(); count > 0; --count) {
      Entry e;
      for (const auto& [content, form] : format) read_field(e, content, form);
      out.push_back(std::move(e));
    }
    return out;
  }

  void read_field(Entry& entry, std::uint64_t content, std::uint64_t form) {
    if (content == kPath) {
      entry.path = string(form);
      return;
    }
    const std::uint64_t number = skip_or_read(form);
    if (content == kDirectory) entry.directory = number;
  }

  std::string string(std::uint64_t form) {
    if (form == kFormString) return in_.c_string();
    const char* name = form == kFormLineStrp ? ".debug_line_str" : form == kFormStrp ? ".debug_str" : nullptr;
    const elf::Section* section = name ? file_.section(name) : nullptr;
    if (!section) throw ObjectError(".debug_line path of form " + std::to_string(form));
    return Reader(section->bytes, name, in_.u32()).c_string();
  }

  std::uint64_t skip_or_read(std::uint64_t form) {
    switch (form) {
      case kFormUdata: return in_.uleb();
      case kFormData1: return in_.u8();
      case kFormData2: return in_.u16();
      case kFormData4:
      case kFormLineStrp:
      case kFormStrp: return in_.u32();
      case kFormData8: return in_.u64();
      case kFormData16: in_.bytes(16); return 0;
      case kFormString: in_.c_string(); return 0;
      case kFormBlock: in_.bytes(in_.uleb()); return 0;
      default: throw ObjectError(".debug_line field of form " + std::to_string(form));
    }
  }

  void step(std::vector<SourceLine>& rows) {
    const std::uint8_t opcode = in_.u8();
    if (opcode >= program_.opcode_base) special(opcode - program_.opcode_base, rows);
    else if (opcode == 0) extended(rows);
    else standard(opcode, rows);
  }

  void special(unsigned adjusted, std::vector<SourceLine>& rows) {
    state_.address += adjusted / program_.line_range * program_.min_length;
    state_.line += program_.line_base + static_cast<int>(adjusted % program_.line_range);
    emit(rows, false);
  }

  void extended(std::vector<SourceLine>& rows) {
    const std::uint64_t length = in_.uleb();
    const std::size_t next = in_.position() + length;
    switch (in_.u8()) {
      case 1:  // DW_LNE_end_sequence
        emit(rows, true);
        state_ = {};
        break;
      case 2: state_.address = length == 9 ? in_.u64() : in_.u32(); break;  // DW_LNE_set_address
      default: break;
    }
    in_.seek(next);
  }

  void standard(std::uint8_t opcode, std::vector<SourceLine>& rows) {
    switch (opcode) {
      case 1: emit(rows, false); break;                                       // copy
      case 2: state_.address += in_.uleb() * program_.min_length; break;      // advance_pc
      case 3: state_.line += static_cast<std::int32_t>(in_.sleb()); break;    // advance_line
      case 4: state_.file = in_.uleb(); break;                                // set_file
      case 5: state_.column = static_cast<std::uint32_t>(in_.uleb()); break;  // set_column
      case 8:                                                                 // const_add_pc
        state_.address += (255u - program_.opcode_base) / program_.line_range * program_.min_length;
        break;
      case 9: state_.address += in_.u16(); break;  // fixed_advance_pc
      default:                                     // is_stmt, basic_block, prologue marks, isa: no effect on rows
        for (unsigned i = 0; i < program_.lengths.at(opcode - 1u); ++i) in_.uleb();
    }
  }

  void emit(std::vector<SourceLine>& rows, bool end) {
    rows.push_back({state_.address, path(state_.file), state_.line, state_.column, end});
  }

  std::string path(std::uint64_t index) const {
    if (index >= program_.files.size()) return {};
    const Entry& e = program_.files[index];
    if (e.path.starts_with('/') || e.directory >= program_.directories.size()) return e.path;
    const std::string& directory = program_.directories[e.directory];
    return directory.empty() ? e.path : directory + "/" + e.path;
  }

  const elf::File& file_;
  Reader in_;
  Program program_;
  State state_;
};

}  // namespace

std::vector<SourceLine> source_lines(const elf::File& file) {
  std::vector<SourceLine> rows;
  const elf::Section* section = file.section(".debug_line");
  if (!section) return rows;
  Reader in(section->bytes, ".debug_line");
  while (!in.done()) {
    const std::uint32_t length = in.u32();
    if (length >= 0xfffffff0) throw ObjectError("64-bit DWARF is not produced for AMDGPU");
    Unit(file, in.bytes(length)).run(rows);
  }
  // An end mark sorts before a row at the same address, so that the row wins.
  std::stable_sort(rows.begin(), rows.end(), [](const SourceLine& a, const SourceLine& b) {
    return a.address != b.address ? a.address < b.address : a.end && !b.end;
  });
  return rows;
}

const SourceLine* line_at(const std::vector<SourceLine>& lines, std::uint64_t address) {
  auto after = std::upper_bound(lines.begin(), lines.end(), address,
                                [](std::uint64_t at, const SourceLine& row) { return at < row.address; });
  if (after == lines.begin() || std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

}  // namespace amdsim::object
