#include "decode.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "error.hpp"
#include "fetch.hpp"

namespace amdsim {
namespace {

using Sv = std::string_view;

bool starts(Sv s, Sv prefix) { return s.substr(0, prefix.size()) == prefix; }
bool ends(Sv s, Sv suffix) { return s.size() >= suffix.size() && s.substr(s.size() - suffix.size()) == suffix; }

struct Failure {
  const AsmInst& text;
  [[noreturn]] void operator()(const std::string& reason) const {
    throw LoadError("assembly line " + std::to_string(text.line) + ": " + reason + ": " + text.text);
  }
};

Encoding strip_encoding(std::string& mnemonic) {
  static constexpr std::pair<Sv, Encoding> kSuffixes[] = {
      {"_e32", Encoding::E32}, {"_e64", Encoding::E64}, {"_dpp", Encoding::Dpp}, {"_sdwa", Encoding::Sdwa}};
  for (auto [suffix, encoding] : kSuffixes) {
    if (!ends(mnemonic, suffix)) continue;
    mnemonic.resize(mnemonic.size() - suffix.size());
    if (encoding == Encoding::E64 && ends(mnemonic, "_dpp")) mnemonic.resize(mnemonic.size() - 4);
    return encoding;
  }
  return Encoding::Default;
}

u16 half_bits(double value) {  // the nine float inline constants are exact in half precision, 1/2pi is not
  if (value > 0.15 && value < 0.16) return 0x3118;
  u32 single = bits<u32>(static_cast<float>(value));
  if (single << 1 == 0) return static_cast<u16>(single >> 16);
  return static_cast<u16>((single >> 16 & 0x8000) | (((single >> 23 & 0xff) - 112) << 10) | (single >> 13 & 0x3ff));
}

bool is_float_text(Sv s) { return !starts(s, "0x") && !starts(s, "-0x") && s.find_first_of(".eE") != Sv::npos; }

// ISA 3.? "Inline constants": integers -16..64 and nine floats; everything else is a 32-bit literal.
u64 constant_bits(Sv s, Ty type, bool& literal) {
  const std::string text(s);
  const bool is64 = ty_dwords(type) == 2 && type != Ty::PkF32;
  if (is_float_text(s)) {
    double value = std::strtod(text.c_str(), nullptr);
    literal = false;
    if (type == Ty::F16 || type == Ty::PkF16 || type == Ty::B16) return half_bits(value);
    if (type == Ty::BF16 || type == Ty::PkBF16) return bits<u32>(static_cast<float>(value)) >> 16;
    if (is64) return bits<u64>(text == "0.15915494" || text == "0.15915494309189532" ? 0.15915494309189532 : value);
    return bits<u32>(static_cast<float>(value));
  }
  i64 value = static_cast<i64>(std::strtoull(text.c_str() + (s[0] == '-'), nullptr, 0));
  if (s[0] == '-') value = -value;
  literal = value < -16 || value > 64;
  if (type == Ty::F64 && literal) return static_cast<u64>(value) >> 32 ? static_cast<u64>(value) : static_cast<u64>(value) << 32;
  if (is64) return static_cast<u64>(value);
  if (!literal && (type == Ty::F16 || type == Ty::BF16 || type == Ty::B16 || type == Ty::PkF16 || type == Ty::PkB16 || type == Ty::PkBF16))
    return static_cast<u16>(value);
  return static_cast<u32>(value);
}

struct NamedScalar {
  Sv name;
  u16 code;
  u8 dwords;
};
constexpr NamedScalar kNamed[] = {
    {"vcc", 106, 2},      {"vcc_lo", 106, 1},      {"vcc_hi", 107, 1},          {"exec", 126, 2},
    {"exec_lo", 126, 1},  {"exec_hi", 127, 1},     {"m0", 124, 1},              {"flat_scratch", 102, 2},
    {"flat_scratch_lo", 102, 1}, {"flat_scratch_hi", 103, 1}, {"xnack_mask", 104, 2}, {"xnack_mask_lo", 104, 1},
    {"xnack_mask_hi", 105, 1},   {"src_shared_base", 235, 2}, {"src_shared_limit", 236, 2},
    {"src_private_base", 237, 2}, {"src_private_limit", 238, 2}, {"src_vccz", 251, 1}, {"src_execz", 252, 1},
    {"src_scc", 253, 1},  {"vccz", 251, 1},        {"execz", 252, 1},           {"scc", 253, 1}};

// "12" or "[12:15]" after the register letter; inline assembly leaves hexadecimal numbers in the latter.
bool parse_range(Sv s, int& first, int& count) {
  if (s.empty()) return false;
  const std::string text(s);
  char* end = nullptr;
  if (s[0] != '[') {
    first = static_cast<int>(std::strtol(text.c_str(), &end, 10)), count = 1;
    return end != text.c_str() && *end == 0 && std::isdigit(static_cast<unsigned char>(s[0]));
  }
  first = static_cast<int>(std::strtol(text.c_str() + 1, &end, 0)), count = 1;
  if (*end == ':') count = static_cast<int>(std::strtol(end + 1, &end, 0)) - first + 1;
  return *end == ']';
}

bool parse_register(Sv s, Operand& op) {
  for (const NamedScalar& named : kNamed) {
    if (s != named.name) continue;
    op.kind = named.code < sreg::kCount ? Kind::Sgpr : Kind::Special;
    op.reg = named.code, op.dwords = named.dwords;
    return true;
  }
  int first = 0, count = 0;
  const bool ttmp = starts(s, "ttmp");
  if (!ttmp && s.size() > 1 && s[0] != 'v' && s[0] != 'a' && s[0] != 's') return false;
  if (!parse_range(s.substr(ttmp ? 4 : 1), first, count)) return false;
  op.kind = s[0] == 's' || ttmp ? Kind::Sgpr : Kind::Vgpr;
  op.reg = static_cast<u16>(first + (s[0] == 'a' ? kAgprRow : ttmp ? 108 : 0));
  op.dwords = static_cast<u8>(count);
  return true;
}

void strip_modifiers(Sv& s, Operand& op) {
  for (bool again = true; again;) {
    again = true;
    if (starts(s, "sext(")) op.sext = true, s = s.substr(5, s.size() - 6);
    else if (starts(s, "neg(")) op.neg = true, s = s.substr(4, s.size() - 5);
    else if (starts(s, "abs(")) op.abs = true, s = s.substr(4, s.size() - 5);
    else if (s.size() > 2 && s[0] == '|' && s.back() == '|') op.abs = true, s = s.substr(1, s.size() - 2);
    else if (s.size() > 1 && s[0] == '-' && !std::isdigit(static_cast<unsigned char>(s[1]))) op.neg = true, s = s.substr(1);
    else again = false;
  }
}

Sel parse_sel(Sv s) {
  static constexpr Sv kNames[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"};
  for (u8 i = 0; i < 7; ++i)
    if (s == kNames[i]) return static_cast<Sel>(i);
  throw LoadError("unknown SDWA selection '" + std::string(s) + "'");
}

u8 parse_bits(Sv list) {  // "[0,1,1]"
  u8 value = 0;
  int bit = 0;
  for (char c : list)
    if (c == '0' || c == '1') value = static_cast<u8>(value | (c - '0') << bit++);
  return value;
}

i64 parse_int(Sv s) { return evaluate(s, {}); }

// ds_swizzle_b32 offset:swizzle(MODE, ...): the assembler's macro for the 16-bit pattern.
i32 swizzle_offset(Sv s, const Failure& fail) {
  std::vector<i64> n;
  std::string mask;
  Sv inner = s.substr(8, s.size() - 9);
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= inner.size();) {
    std::size_t comma = std::min(inner.find(',', at), inner.size());
    Sv part = inner.substr(at, comma - at);
    while (!part.empty() && part[0] == ' ') part.remove_prefix(1);
    parts.emplace_back(part);
    at = comma + 1;
  }
  auto number = [&](std::size_t i) { return static_cast<i32>(parse_int(parts.at(i))); };
  if (parts[0] == "QUAD_PERM") return 0x8000 | number(1) | number(2) << 2 | number(3) << 4 | number(4) << 6;
  if (parts[0] == "SWAP") return 0x1f | number(1) << 10;
  if (parts[0] == "REVERSE") return 0x1f | (number(1) - 1) << 10;
  if (parts[0] == "BROADCAST") return (0x1f & ~(number(1) - 1)) | number(2) << 5;
  if (parts[0] == "FFT") return 0xe000 | number(1);
  if (parts[0] == "ROTATE") return 0xc000 | number(1) << 10 | number(2) << 5;
  if (parts[0] != "BITMASK_PERM") fail("unknown swizzle");
  i32 value = 0;
  for (int i = 0; i < 5; ++i) {  // most significant bit first: 0, 1, p (preserve), i (invert)
    const int bit = 4 - i;
    const char c = parts[1][static_cast<std::size_t>(i) + 1];
    if (c == '1') value |= 1 << (5 + bit);
    if (c == 'p' || c == 'i') value |= 1 << bit;
    if (c == 'i') value |= 1 << (10 + bit);
  }
  return value;
}

bool parse_dpp(Sv name, Sv value, Modifiers& mod) {
  struct Control {
    Sv name;
    u16 base;
  };
  static constexpr Control kControls[] = {{"row_shl", 0x100},   {"row_shr", 0x110},  {"row_ror", 0x120},
                                          {"wave_shl", 0x12f},  {"wave_rol", 0x133}, {"wave_shr", 0x137},
                                          {"wave_ror", 0x13b},  {"row_newbcast", 0x150}};
  if (name == "quad_perm") {
    int shift = 0;
    for (char c : value)
      if (std::isdigit(static_cast<unsigned char>(c))) mod.dpp_ctrl = static_cast<u16>(mod.dpp_ctrl | (c - '0') << shift), shift += 2;
    return true;
  }
  if (name == "row_mirror") return mod.dpp_ctrl = 0x140, true;
  if (name == "row_half_mirror") return mod.dpp_ctrl = 0x141, true;
  if (name == "row_bcast") return mod.dpp_ctrl = value == "15" ? 0x142 : 0x143, true;
  for (const Control& c : kControls)
    if (name == c.name) return mod.dpp_ctrl = static_cast<u16>(c.base + parse_int(value)), true;
  return false;
}

void parse_modifier(Sv text, Inst& inst, const Failure& fail) {
  Modifiers& m = inst.mod;
  std::size_t colon = text.find(':');
  Sv name = text.substr(0, colon), value = colon == Sv::npos ? Sv{} : text.substr(colon + 1);
  auto number = [&] { return parse_int(value); };
  if (name == "offset") m.offset = starts(value, "swizzle(") ? swizzle_offset(value, fail) : static_cast<i32>(number());
  else if (name == "offset0") m.offset = static_cast<i32>(number());
  else if (name == "offset1") m.offset1 = static_cast<i32>(number());
  else if (name == "sc0" || name == "glc") m.sc0 = true;
  else if (name == "sc1" || name == "scc") m.sc1 = true;
  else if (name == "nt" || name == "slc") m.nt = true;
  else if (name == "lds") m.lds = true;
  else if (name == "offen") m.offen = true;
  else if (name == "idxen") m.idxen = true;
  else if (name == "clamp") m.clamp = true;
  else if (name == "mul") m.omod = static_cast<u8>(number() == 2 ? 1 : 2);
  else if (name == "div") m.omod = 3;
  else if (name == "op_sel") m.op_sel = parse_bits(value), m.has_op_sel = true;
  else if (name == "op_sel_hi") m.op_sel_hi = parse_bits(value), m.has_op_sel_hi = true;
  else if (name == "neg_lo") m.neg_lo = parse_bits(value);
  else if (name == "neg_hi") m.neg_hi = parse_bits(value);
  else if (name == "cbsz") m.cbsz = static_cast<u8>(number());
  else if (name == "abid") m.abid = static_cast<u8>(number());
  else if (name == "blgp") m.blgp = static_cast<u8>(number());
  else if (name == "neg") m.blgp = parse_bits(value);  // f64 MFMA: BLGP negates A, B, C
  else if (name == "bitop3") m.bitop3 = static_cast<u8>(number());
  else if (name == "row_mask") m.row_mask = static_cast<u8>(number());
  else if (name == "bank_mask") m.bank_mask = static_cast<u8>(number());
  else if (name == "bound_ctrl") m.bound_ctrl = true;
  else if (name == "dst_sel") m.dst_sel = parse_sel(value);
  else if (name == "src0_sel") inst.src[0].sel = parse_sel(value);
  else if (name == "src1_sel") inst.src[1].sel = parse_sel(value);
  else if (name == "dst_unused") m.dst_unused = value == "UNUSED_PRESERVE" ? DstUnused::Preserve : value == "UNUSED_SEXT" ? DstUnused::Sext : DstUnused::Pad;
  else if (!parse_dpp(name, value, m)) fail("unknown modifier '" + std::string(text) + "'");
}

i64 parse_waitcnt(const AsmInst& text, const Failure& fail) {
  i64 vm = 63, exp = 7, lgkm = 15;
  std::vector<std::string> words = text.operands;
  words.insert(words.end(), text.modifiers.begin(), text.modifiers.end());
  for (Sv word : words) {
    if (word == "&" || word.empty()) continue;
    std::size_t open = word.find('(');
    if (open == Sv::npos) {
      i64 simm = parse_int(word);
      return simm;
    }
    i64 value = parse_int(word.substr(open + 1, word.size() - open - 2));
    if (starts(word, "vmcnt")) vm = value;
    else if (starts(word, "lgkmcnt")) lgkm = value;
    else if (starts(word, "expcnt")) exp = value;
    else fail("unknown counter");
  }
  return (vm & 15) | exp << 4 | lgkm << 8 | (vm >> 4) << 14;
}

i64 parse_hwreg(Sv s, const Failure& fail) {  // id | offset << 6 | (size - 1) << 11
  if (!starts(s, "hwreg(")) return parse_int(s);
  static constexpr std::pair<Sv, int> kIds[] = {
      {"HW_REG_MODE", 1}, {"HW_REG_STATUS", 2}, {"HW_REG_TRAPSTS", 3}, {"HW_REG_HW_ID", 4}, {"HW_REG_GPR_ALLOC", 5},
      {"HW_REG_LDS_ALLOC", 6}, {"HW_REG_IB_STS", 7}, {"HW_REG_SH_MEM_BASES", 15}, {"HW_REG_XCC_ID", 20}};
  Sv inner = s.substr(6, s.size() - 7);
  i64 values[3] = {0, 0, 32};
  int n = 0;
  for (std::size_t at = 0; at <= inner.size() && n < 3; ++n) {
    std::size_t comma = std::min(inner.find(',', at), inner.size());
    Sv part = inner.substr(at, comma - at);
    while (!part.empty() && part[0] == ' ') part.remove_prefix(1);
    const auto* id = std::find_if(std::begin(kIds), std::end(kIds), [&](const auto& p) { return p.first == part; });
    if (n == 0 && id != std::end(kIds)) values[0] = id->second;
    else if (n == 0 && !std::isdigit(static_cast<unsigned char>(part[0]))) fail("unknown hardware register");
    else values[n] = parse_int(part);
    at = comma + 1;
  }
  return values[0] | values[1] << 6 | (values[2] - 1) << 11;
}

class InstDecoder {
 public:
  InstDecoder(Decoder& decoder, const AsmInst& text) : d_(decoder), text_(text), fail_{text} {}

  Inst run(u32 index) {
    inst_.index = index;
    inst_.address = text_.address ? *text_.address : kCodeBase + 8ull * index;
    inst_.line = text_.line, inst_.loc_file = text_.loc_file, inst_.loc_line = text_.loc_line;
    inst_.text = text_.text;
    find();
    if (inst_.desc->src[0] == Ty::Waitcnt) {
      inst_.imm = parse_waitcnt(text_, fail_);
    } else {
      for (const std::string& m : text_.modifiers) parse_modifier(m, inst_, fail_);
      if (takes_operands()) operands();
      else for (const std::string& m : text_.operands) parse_modifier(m, inst_, fail_);  // "buffer_inv sc1"
    }
    finish_encoding();
    inst_.exec = inst_.desc->exec, inst_.body = inst_.desc->body, inst_.flags = inst_.desc->flags;
    const bool is950 = d_.program.target->bit == kGfx950;
    inst_.passes = inst_.desc->passes[is950];
    const bool small = inst_.mod.cbsz >= 2 && inst_.mod.blgp >= 2;  // f8f6f4: fp6, bf6 or fp4 on both sides
    if (inst_.flags & kMfma && inst_.desc->aux == kHalvesForSmallFormats && small) inst_.passes /= 2;
    if (inst_.mod.lds) inst_.flags |= kLdsDma | kReadsM0;
    derive_checks(inst_, *d_.program.target);
    return std::move(inst_);
  }

 private:
  void find() {
    std::string name = text_.mnemonic;
    inst_.desc = Registry::instance().find(name);
    if (!inst_.desc) {
      inst_.encoding = strip_encoding(name);
      inst_.desc = Registry::instance().find(name);
    }
    if (!inst_.desc) throw_unknown();
    if (!(inst_.desc->targets & d_.program.target->bit)) fail_("not an instruction of " + std::string(d_.program.target->name));
  }
  [[noreturn]] void throw_unknown() {
    Violation v;
    v.kind = "unsupported";
    v.reason = "unknown instruction '" + text_.mnemonic + "' on " + std::string(d_.program.target->name);
    v.instruction = text_.text;
    v.asm_line = text_.line;
    v.source = d_.program.source_of(inst_);
    throw SimError(v);
  }

  void finish_encoding() {
    const Modifiers& m = inst_.mod;
    if (inst_.encoding == Encoding::Dpp) inst_.dpp_map = dpp_lane_map(m.dpp_ctrl);
    bool signs = false, packed = false;
    for (int i = 0; i < inst_.n_src; ++i) {
      signs |= inst_.src[i].neg || inst_.src[i].abs || inst_.src[i].sext;
      packed |= inst_.desc->src[i] == Ty::PkF32;
    }
    const u8 all = static_cast<u8>((1 << inst_.n_src) - 1);
    const bool default_hi = (m.op_sel_hi & all) == all && !(packed && has_constant());
    inst_.plain = inst_.encoding != Encoding::Dpp && inst_.encoding != Encoding::Sdwa && !signs && !m.clamp && !m.omod &&
                  !m.op_sel && default_hi && !m.neg_lo && !m.neg_hi;
  }
  bool has_constant() const {
    for (int i = 0; i < inst_.n_src; ++i)
      if (inst_.src[i].kind == Kind::Const) return true;
    return false;
  }

  bool takes_operands() const {
    const Desc& d = *inst_.desc;
    return d.dst != Ty::None || d.sdst != Ty::None || d.n_src;
  }

  void operands() {
    const Desc& desc = *inst_.desc;
    std::size_t next = 0;
    auto take = [&](Ty type, Operand& into) {
      if (next >= text_.operands.size()) fail_("missing operand");
      parse(text_.operands[next++], type, into);
    };
    // Atomics return the old value only with sc0; direct loads to LDS have no register destination.
    const bool silent = (desc.flags & kAtomic && desc.flags & kVmem && !inst_.mod.sc0) || inst_.mod.lds;
    if (desc.dst != Ty::None && !silent) take(desc.dst, inst_.dst);
    if (desc.sdst != Ty::None) take(desc.sdst, inst_.sdst);
    for (int i = 0; i < desc.n_src; ++i) {
      if (next >= text_.operands.size()) {
        if (optional(i)) break;
        fail_("missing operand");
      }
      take(desc.src[i], inst_.src[i]);
      inst_.n_src = static_cast<u8>(i + 1);
    }
    if (next != text_.operands.size()) fail_("too many operands");
  }

  // buffer and ds forms without an offset register, s_load without a second offset
  bool optional(int i) const { return inst_.desc->flags & (kSmem | kBuffer | kDs) && i > 0; }

  void parse(Sv s, Ty type, Operand& op) {
    if (type == Ty::Label) return label(s, op);
    if (type == Ty::Imm16) {
      inst_.imm = immediate(s);
      op.kind = Kind::Const, op.value = static_cast<u64>(inst_.imm);
      return;
    }
    if (type == Ty::Hwreg) {
      inst_.imm = parse_hwreg(s, fail_);
      op.kind = Kind::Const, op.value = static_cast<u64>(inst_.imm);
      return;
    }
    if (s == "off" || s == "null") {
      op.kind = Kind::Off, op.dwords = 0;
      return;
    }
    strip_modifiers(s, op);
    if (parse_register(s, op)) return width(s, type, op);
    constant(s, type, op);
  }

  void width(Sv s, Ty type, const Operand& op) {
    if (type == Ty::Any || op.kind == Kind::Special) return;
    int expected = type == Ty::Mask ? 2 : ty_dwords(type);
    if (op.dwords != expected)
      fail_("operand '" + std::string(s) + "' has " + std::to_string(op.dwords) + " dwords, " + std::to_string(expected) + " expected");
  }

  static i64 indexed_operands(Sv s) {  // "gpr_idx(SRC0,DST)"
    static constexpr Sv kNames[] = {"SRC0", "SRC1", "SRC2", "DST"};
    i64 bits = 0;
    for (int i = 0; i < 4; ++i) bits |= i64(s.find(kNames[i]) != Sv::npos) << i;
    return bits;
  }

  i64 immediate(Sv s) {
    if (starts(s, "sendmsg(")) return 0;
    if (starts(s, "gpr_idx(")) return indexed_operands(s);
    return parse_int(s);
  }

  void label(Sv s, Operand& op) {
    op.kind = Kind::Target, op.dwords = 0;
    auto it = d_.program.labels.find(std::string(s));
    if (it != d_.program.labels.end()) {
      op.value = it->second;
      return;
    }
    if (!std::isdigit(static_cast<unsigned char>(s[0])) && s[0] != '-') fail_("unknown label");
    const i64 words = static_cast<i16>(parse_int(s));  // disassembler form: signed dwords from the next instruction
    op.value = d_.program.index_of_address(inst_.address + 4 + static_cast<u64>(4 * words));
  }

  void constant(Sv s, Ty type, Operand& op) {
    op.kind = Kind::Const;
    op.dwords = static_cast<u8>(std::max(1, type == Ty::Any ? 1 : ty_dwords(type)));
    const bool numeric = std::isdigit(static_cast<unsigned char>(s[0])) || s[0] == '-';
    op.value = numeric ? constant_bits(s, type, op.is_literal) : symbol(s, op);
    const bool wide = ty_dwords(type) >= 2 && type != Ty::Any;
    const u64 spread = wide && type != Ty::PkF32 && ty_dwords(type) > 2 ? u64(u32(op.value)) * 0x100000001ull : op.value;
    op.lanes = d_.splat(type == Ty::PkF32 ? u32(op.value) : spread, wide);
  }

  // sym@rel32@lo+4 and @hi+12 after s_getpc_b64; sym@abs32@lo for LDS symbols.
  u64 symbol(Sv s, Operand& op) {
    op.is_literal = true;
    std::size_t at = s.find('@'), plus = s.find('+', at == Sv::npos ? 0 : at);
    std::string name(s.substr(0, std::min(at, plus)));
    i64 addend = plus == Sv::npos ? 0 : parse_int(s.substr(plus + 1));
    if (auto it = d_.lds_offset.find(name); it != d_.lds_offset.end()) return it->second + static_cast<u64>(addend);
    u64 address = d_.program.symbol_address(name);
    if (!address) fail_("unknown symbol '" + name + "'");
    const bool relative = s.find("rel32") != Sv::npos || s.find("gotpcrel32") != Sv::npos;
    u64 value = address + static_cast<u64>(addend);
    if (relative) value -= inst_.address + 4;  // the literal follows the 4-byte opcode
    return s.find("@hi") != Sv::npos ? value >> 32 : u32(value);
  }

  Decoder& d_;
  const AsmInst& text_;
  Failure fail_;
  Inst inst_;
};

}  // namespace

const u32* Decoder::splat(u64 value, bool wide) {
  u64 key = value * 2 + wide;
  if (value >> 63) key ^= 0x5555'5555'0000'0001ull;  // the shift above drops the top bit
  auto it = splats.find(key);
  if (it != splats.end() && it->second[0] == u32(value) && (!wide || it->second[kLanes] == u32(value >> 32))) return it->second;
  auto& rows = program.pool.emplace_back(static_cast<std::size_t>(wide ? 2 * kLanes : kLanes), u32(value));
  if (wide) std::fill(rows.begin() + kLanes, rows.end(), u32(value >> 32));
  return splats[key] = rows.data();
}

Inst Decoder::decode(const AsmInst& text, u32 index) { return InstDecoder(*this, text).run(index); }

}  // namespace amdsim
