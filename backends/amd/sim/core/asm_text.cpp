#include "asm_text.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "error.hpp"

namespace amdsim {
namespace {

using Sv = std::string_view;

Sv trim(Sv s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
  return s;
}

bool starts(Sv s, Sv prefix) { return s.substr(0, prefix.size()) == prefix; }

// Splits at `separator` (or at white space when it is ' ') outside brackets and quotes.
std::vector<Sv> split(Sv s, char separator) {
  std::vector<Sv> out;
  int depth = 0;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= s.size(); ++i) {
    char c = i < s.size() ? s[i] : separator;
    if (i < s.size() && c == '"') quoted = !quoted;
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    bool cut = separator == ' ' ? std::isspace(static_cast<unsigned char>(c)) != 0 : c == separator;
    if (i < s.size() && (depth || quoted || !cut)) continue;
    Sv piece = trim(s.substr(begin, i - begin));
    if (!piece.empty() || separator != ' ') out.push_back(piece);
    begin = i + 1;
  }
  return out;
}

class Expression {
 public:
  Expression(Sv text, const std::unordered_map<std::string, i64>& symbols) : s_(text), symbols_(symbols) {}
  i64 run() {
    i64 value = sum();
    if (!peek_end()) fail();
    return value;
  }

 private:
  [[noreturn]] void fail() const { throw LoadError("cannot evaluate '" + std::string(s_) + "'"); }
  void skip() {
    while (i_ < s_.size() && std::isspace(static_cast<unsigned char>(s_[i_]))) ++i_;
  }
  bool peek_end() {
    skip();
    return i_ >= s_.size();
  }
  bool take(char c) {
    skip();
    if (i_ >= s_.size() || s_[i_] != c) return false;
    ++i_;
    return true;
  }
  i64 sum() {
    i64 value = product();
    for (;;) {
      if (take('+')) value += product();
      else if (take('-')) value -= product();
      else return value;
    }
  }
  i64 product() {
    i64 value = atom();
    while (take('*')) value *= atom();
    return value;
  }
  i64 atom() {
    skip();
    if (take('-')) return -atom();
    if (take('(')) {
      i64 value = sum();
      if (!take(')')) fail();
      return value;
    }
    if (i_ < s_.size() && std::isdigit(static_cast<unsigned char>(s_[i_]))) return number();
    return name();
  }
  i64 number() {
    const std::string rest(s_.substr(i_));
    char* end = nullptr;
    i64 value = static_cast<i64>(std::strtoull(rest.c_str(), &end, 0));
    i_ += static_cast<std::size_t>(end - rest.c_str());
    return value;
  }
  i64 name() {
    std::size_t begin = i_;
    auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$'; };
    while (i_ < s_.size() && part(s_[i_])) ++i_;
    std::string id(s_.substr(begin, i_ - begin));
    if (id.empty()) fail();
    if (take('(')) return call(id);
    auto it = symbols_.find(id);
    if (it == symbols_.end()) fail();
    return it->second;
  }
  i64 call(const std::string& id) {
    std::vector<i64> args;
    do args.push_back(sum());
    while (take(','));
    if (!take(')')) fail();
    i64 value = args[0];
    for (std::size_t k = 1; k < args.size(); ++k) {
      if (id == "max") value = std::max(value, args[k]);
      else if (id == "or") value |= args[k];
      else fail();
    }
    return value;
  }
  Sv s_;
  const std::unordered_map<std::string, i64>& symbols_;
  std::size_t i_ = 0;
};

class Parser {
 public:
  explicit Parser(Sv text) : text_(text) {}
  AsmModule run();

 private:
  void line(Sv raw);
  void directive(Sv s);
  void instruction(Sv s, Sv comment);
  void label(Sv name);
  void section(Sv name);
  void data(Sv name, Sv args);
  void emit(u64 value, int bytes);
  void emit_cell(Sv arg, int bytes);
  void emit_string(Sv arg, bool terminate);
  void align(Sv args);
  void loc(Sv args);
  void file(Sv args);
  void lds_symbol(Sv args);
  void kernel_directive(Sv name, Sv value);
  void set_symbol(Sv args);
  void evaluate_kernels();
  [[noreturn]] void fail(const std::string& reason) const {
    throw LoadError("assembly line " + std::to_string(line_) + ": " + reason);
  }

  Sv text_;
  AsmModule m_;
  int line_ = 0;
  bool in_text_ = true;
  bool ignored_ = false;  // debug information and other sections without meaning for execution
  bool in_metadata_ = false;
  int section_ = -1;
  int loc_file_ = -1, loc_line_ = 0;
  std::string kernel_;  // inside .amdhsa_kernel
  std::map<std::string, std::map<std::string, std::string>> raw_kernels_;
  std::unordered_map<std::string, std::string> sets_;
};

AsmModule Parser::run() {
  std::size_t at = 0;
  while (at < text_.size()) {
    std::size_t end = text_.find('\n', at);
    if (end == Sv::npos) end = text_.size();
    ++line_;
    line(text_.substr(at, end - at));
    at = end + 1;
  }
  evaluate_kernels();
  return std::move(m_);
}

void Parser::line(Sv raw) {
  if (in_metadata_) {
    if (trim(raw) == ".end_amdgpu_metadata") in_metadata_ = false;
    else m_.metadata.append(raw).push_back('\n');
    return;
  }
  Sv s = raw, comment;
  std::size_t cut = std::min(raw.find(';'), raw.find("//"));
  if (cut != Sv::npos && raw.find('"') == Sv::npos) s = raw.substr(0, cut), comment = raw.substr(cut);
  s = trim(s);
  while (!s.empty()) {  // labels, possibly followed by something on the same line
    std::size_t colon = s.find(':');
    Sv head = s.substr(0, colon == Sv::npos ? 0 : colon);
    bool is_label = !head.empty() && std::all_of(head.begin(), head.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$' || c == '@';
    });
    if (!is_label) break;
    label(head);
    s = trim(s.substr(colon + 1));
  }
  if (s.empty()) return;
  if (s.front() == '.') directive(s);
  else if (in_text_ && !ignored_) instruction(s, comment);
}

void Parser::label(Sv name) {
  if (ignored_) return;
  if (in_text_) m_.labels[std::string(name)] = static_cast<u32>(m_.insts.size());
  else m_.data_symbols[std::string(name)] = {section_, m_.sections[static_cast<std::size_t>(section_)].bytes.size()};
}

void Parser::section(Sv name) {
  in_text_ = name == ".text" || starts(name, ".text.");
  const bool is_data = starts(name, ".rodata") || starts(name, ".data") || starts(name, ".bss") ||
                       starts(name, ".sdata") || starts(name, ".lrodata") || starts(name, ".ldata");
  ignored_ = !in_text_ && !is_data;
  if (!is_data) return;
  for (std::size_t i = 0; i < m_.sections.size(); ++i) {
    if (m_.sections[i].name == name) {
      section_ = static_cast<int>(i);
      return;
    }
  }
  section_ = static_cast<int>(m_.sections.size());
  m_.sections.push_back({std::string(name), {}, {}, !starts(name, ".rodata")});
}

void Parser::directive(Sv s) {
  std::size_t space = s.find_first_of(" \t");
  Sv name = s.substr(0, space);
  Sv args = space == Sv::npos ? Sv{} : trim(s.substr(space));
  if (!kernel_.empty()) {
    if (name == ".end_amdhsa_kernel") kernel_.clear();
    else kernel_directive(name, args);
    return;
  }
  if (name == ".section") return section(split(args, ',')[0]);
  if (name == ".text" || name == ".data" || name == ".bss") return section(name);
  if (name == ".loc") return loc(args);
  if (name == ".file") return file(args);
  if (name == ".amdgcn_target") {
    m_.target = std::string(args.substr(1, args.size() - 2));
    return;
  }
  if (name == ".amdhsa_kernel") {
    kernel_ = std::string(args);
    m_.kernels[kernel_].line = line_;
    raw_kernels_[kernel_];
    return;
  }
  if (name == ".amdgpu_metadata") {
    in_metadata_ = true;
    return;
  }
  if (name == ".amdgpu_lds" ) return lds_symbol(args);
  if (name == ".set") return set_symbol(args);
  if (!in_text_ && !ignored_) data(name, args);
}

void Parser::set_symbol(Sv args) {
  auto parts = split(args, ',');
  if (parts.size() < 2) return;
  sets_[std::string(parts[0])] = std::string(trim(args.substr(parts[0].size() + 1 + static_cast<std::size_t>(parts[0].data() - args.data()))));
}

void Parser::kernel_directive(Sv name, Sv value) {
  if (!starts(name, ".amdhsa_")) fail("unexpected '" + std::string(name) + "' inside .amdhsa_kernel");
  raw_kernels_[kernel_][std::string(name.substr(8))] = std::string(value);
}

// Descriptor values may refer to .set symbols of functions that come later, hence only at the end.
void Parser::evaluate_kernels() {
  std::unordered_map<std::string, i64> symbols;
  for (int round = 0; round < 16; ++round) {
    bool changed = false;
    for (const auto& [name, expression] : sets_) {
      if (symbols.count(name)) continue;
      try {
        symbols[name] = evaluate(expression, symbols);
        changed = true;
      } catch (const LoadError&) {
        continue;  // depends on a symbol that a later round resolves, or on a code label nobody asks for
      }
    }
    if (!changed) break;
  }
  for (const auto& [kernel, values] : raw_kernels_)
    for (const auto& [key, expression] : values) m_.kernels[kernel].values[key] = evaluate(expression, symbols);
}

void Parser::lds_symbol(Sv args) {
  auto parts = split(args, ',');
  LdsSymbol symbol;
  if (parts.size() > 1) symbol.size = static_cast<u64>(evaluate(parts[1], {}));
  if (parts.size() > 2) symbol.align = static_cast<u64>(evaluate(parts[2], {}));
  m_.lds[std::string(parts[0])] = symbol;
}

// .loc FILE LINE COLUMN ...
void Parser::loc(Sv args) {
  auto parts = split(args, ' ');
  if (parts.size() < 2) return;
  int line = static_cast<int>(evaluate(parts[1], {}));
  loc_file_ = static_cast<int>(evaluate(parts[0], {}));
  if (line) loc_line_ = line;  // line 0 marks compiler-made code: keep the last real line
}

// .file N "dir" "name" | .file N "name" | .file "name"
void Parser::file(Sv args) {
  auto parts = split(args, ' ');
  if (parts.size() < 2 || parts[0].front() == '"') return;
  auto unquote = [](Sv s) { return std::string(s.substr(1, s.size() - 2)); };
  auto index = static_cast<std::size_t>(evaluate(parts[0], {}));
  if (m_.files.size() <= index) m_.files.resize(index + 1);
  std::string path = unquote(parts[1]);
  if (parts.size() > 2 && parts[2].front() == '"') {
    std::string name = unquote(parts[2]);
    path = name.front() == '/' ? name : path + "/" + name;
  }
  m_.files[index] = path;
}

void Parser::emit(u64 value, int bytes) {
  auto& out = m_.sections[static_cast<std::size_t>(section_)].bytes;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<u8>(value >> (8 * i)));
}

void Parser::emit_cell(Sv arg, int bytes) {
  auto& section = m_.sections[static_cast<std::size_t>(section_)];
  const bool numeric = !arg.empty() && (std::isdigit(static_cast<unsigned char>(arg[0])) || arg[0] == '-');
  if (numeric) return emit(static_cast<u64>(evaluate(arg, {})), bytes);
  std::size_t plus = arg.find_first_of("+-", 1);
  i64 addend = plus == Sv::npos ? 0 : evaluate(arg.substr(arg[plus] == '+' ? plus + 1 : plus), {});
  section.fixups.push_back({section.bytes.size(), bytes, std::string(trim(arg.substr(0, plus))), addend});
  emit(0, bytes);
}

void Parser::emit_string(Sv arg, bool terminate) {
  auto& out = m_.sections[static_cast<std::size_t>(section_)].bytes;
  for (std::size_t i = 1; i + 1 < arg.size(); ++i) {
    char c = arg[i];
    if (c != '\\') {
      out.push_back(static_cast<u8>(c));
      continue;
    }
    c = arg[++i];
    if (c >= '0' && c <= '7') {
      int value = 0;
      for (int n = 0; n < 3 && i + 1 < arg.size() && arg[i] >= '0' && arg[i] <= '7'; ++n) value = value * 8 + (arg[i++] - '0');
      --i;
      out.push_back(static_cast<u8>(value));
    } else {
      out.push_back(static_cast<u8>(c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'f' ? '\f' : c == 'b' ? '\b' : c));
    }
  }
  if (terminate) out.push_back(0);
}

void Parser::align(Sv args) {
  auto& out = m_.sections[static_cast<std::size_t>(section_)].bytes;
  const u64 unit = 1ull << evaluate(split(args, ',')[0], {});
  while (out.size() % unit) out.push_back(0);
}

void Parser::data(Sv name, Sv args) {
  auto& out = m_.sections[static_cast<std::size_t>(section_)].bytes;
  auto cells = [&](int bytes) {
    for (Sv arg : split(args, ',')) emit_cell(arg, bytes);
  };
  if (name == ".byte") cells(1);
  else if (name == ".short" || name == ".hword" || name == ".2byte") cells(2);
  else if (name == ".long" || name == ".word" || name == ".4byte" || name == ".int") cells(4);
  else if (name == ".quad" || name == ".8byte") cells(8);
  else if (name == ".zero" || name == ".skip" || name == ".space") out.resize(out.size() + static_cast<std::size_t>(evaluate(split(args, ',')[0], {})));
  else if (name == ".ascii") emit_string(args, false);
  else if (name == ".asciz" || name == ".string") emit_string(args, true);
  else if (name == ".p2align" || name == ".p2alignl") align(args);
  else if (name == ".fill") {
    auto parts = split(args, ',');
    i64 count = evaluate(parts[0], {});
    int bytes = parts.size() > 1 ? static_cast<int>(evaluate(parts[1], {})) : 1;
    u64 value = parts.size() > 2 ? static_cast<u64>(evaluate(parts[2], {})) : 0;
    for (i64 i = 0; i < count; ++i) emit(value, bytes);
  } else {
    static constexpr Sv kNoEffect[] = {".globl", ".global", ".protected", ".hidden", ".weak", ".local", ".type",
                                       ".size", ".ident", ".addrsig", ".addrsig_sym", ".amdhsa_code_object_version"};
    if (std::find(std::begin(kNoEffect), std::end(kNoEffect), name) == std::end(kNoEffect))
      fail("unknown data directive '" + std::string(name) + "'");
  }
}

std::optional<u64> comment_address(Sv comment) {
  if (!starts(comment, "//")) return std::nullopt;
  comment = trim(comment.substr(2));
  std::size_t colon = comment.find(':');
  if (colon == Sv::npos || colon < 8 || colon > 16) return std::nullopt;
  const std::string digits(comment.substr(0, colon));
  if (!std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isxdigit(c); })) return std::nullopt;
  return std::strtoull(digits.c_str(), nullptr, 16);
}

void Parser::instruction(Sv s, Sv comment) {
  AsmInst inst;
  std::size_t space = s.find_first_of(" \t");
  inst.mnemonic = std::string(s.substr(0, space));
  inst.text = std::string(s);
  std::replace(inst.text.begin(), inst.text.end(), '\t', ' ');
  inst.line = line_;
  inst.loc_file = loc_file_, inst.loc_line = loc_line_;
  inst.address = comment_address(comment);
  if (space != Sv::npos) {
    for (Sv piece : split(trim(s.substr(space)), ',')) {
      auto words = split(piece, ' ');
      if (words.empty()) fail("missing operand in '" + inst.text + "'");
      inst.operands.emplace_back(words[0]);
      for (std::size_t i = 1; i < words.size(); ++i) inst.modifiers.emplace_back(words[i]);
    }
  }
  m_.insts.push_back(std::move(inst));
}

}  // namespace

i64 evaluate(std::string_view expression, const std::unordered_map<std::string, i64>& symbols) {
  return Expression(expression, symbols).run();
}

AsmModule parse_assembly(std::string_view text) { return Parser(text).run(); }

}  // namespace amdsim
