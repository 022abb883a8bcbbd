#include "disassembler.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>

namespace amdsim::object {
namespace {

constexpr const char* kMend = "; install it with: pip install rocm-bindings-compiler";

/// The few functions of llvm-c/Disassembler.h that are used.
struct Api {
  void* (*create)(const char* triple, const char* cpu, const char* features, void*, int, void*, void*);
  std::size_t (*instruction)(void*, std::uint8_t*, std::uint64_t size, std::uint64_t pc, char* text, std::size_t room);
  void (*dispose)(void*);
};

template <class F>
void resolve(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (!function) throw ObjectError(std::string("libLLVM has no ") + name + kMend);
}

// A namespace of its own keeps this LLVM's symbols, and the stand-ins that it may need, away from every other
// LLVM and zlib in the process (dlmopen(3)). A libLLVM whose own dependencies are installed needs no stand-ins.
void* open(const LlvmLibrary& library) {
  if (void* handle = dlmopen(LM_ID_NEWLM, library.path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  Lmid_t scope = LM_ID_NEWLM;
  for (const char* name : {"/librocm_sysdeps_z.so", "/librocm_sysdeps_zstd.so"}) {
    void* handle = dlmopen(scope, (library.sysdeps + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) throw ObjectError(std::string("cannot open ") + dlerror());
    dlinfo(handle, RTLD_DI_LMID, &scope);
  }
  void* handle = dlmopen(scope, library.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw ObjectError(std::string("cannot open LLVM's disassembler: ") + dlerror() + kMend);
  return handle;
}

Api load(const LlvmLibrary& library) {
  if (library.path.empty()) throw ObjectError(std::string("code objects need LLVM's disassembler") + kMend);
  void* handle = open(library);
  for (const char* part : {"TargetInfo", "TargetMC", "Disassembler"}) {
    void (*initialise)();
    resolve(handle, (std::string("LLVMInitializeAMDGPU") + part).c_str(), initialise);
    initialise();
  }
  Api api;
  resolve(handle, "LLVMCreateDisasmCPUFeatures", api.create);
  resolve(handle, "LLVMDisasmInstruction", api.instruction);
  resolve(handle, "LLVMDisasmDispose", api.dispose);
  return api;
}

const Api& loaded(const LlvmLibrary& library) {
  static std::mutex guard;
  static std::map<std::string, Api> known;
  const std::lock_guard lock(guard);
  auto found = known.find(library.path);
  if (found == known.end()) found = known.emplace(library.path, load(library)).first;
  return found->second;
}

std::string trimmed(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t");
  const std::size_t end = text.find_last_not_of(" \t\n");
  std::string out(start == text.npos ? "" : text.substr(start, end - start + 1));
  for (char& c : out)
    if (c == '\t') c = ' ';
  return out;
}

// LLVM marks a literal that could have been an inline constant: lit(0x0). Both mean the same bits, except as a 64-bit
// float, where a literal is the high half; that one keeps its mark.
std::string without_literal_marks(std::string text) {
  if (text.find("f64") != text.npos) return text;
  for (std::size_t at; (at = text.find("lit(")) != text.npos;) {
    text.erase(text.find(')', at), 1);
    text.erase(at, 4);
  }
  return text;
}

Instruction raw_word(Bytes code, std::uint64_t address) {
  std::uint32_t word = 0;
  const std::size_t size = std::min<std::size_t>(4, code.size());
  std::memcpy(&word, code.data(), size);
  char text[32];
  std::snprintf(text, sizeof text, ".long 0x%08x", word);
  return {address, static_cast<std::uint32_t>(size), text};
}

}  // namespace

std::string folder_of(const void* symbol, const std::string& below) {
  Dl_info info{};
  if (dladdr(symbol, &info) == 0 || !info.dli_fname) return below;
  std::error_code unresolved;  // a library that was replaced while in use has no path any more
  const std::filesystem::path path = std::filesystem::canonical(info.dli_fname, unresolved);
  return (unresolved ? std::filesystem::path(info.dli_fname) : path).parent_path() / below;
}

struct Disassembler::State {
  const Api& api;
  void* context;
  ~State() { api.dispose(context); }
};

Disassembler::Disassembler(const LlvmLibrary& library, const std::string& processor) {
  const Api& api = loaded(library);
  void* context = api.create("amdgcn-amd-amdhsa", processor.c_str(), "", nullptr, 0, nullptr, nullptr);
  if (!context) throw ObjectError("this LLVM has no disassembler for " + processor + kMend);
  state_ = std::make_unique<State>(api, context);
}

Disassembler::~Disassembler() = default;
Disassembler::Disassembler(Disassembler&&) noexcept = default;

std::vector<Instruction> Disassembler::run(Bytes code, std::uint64_t address) const {
  std::vector<Instruction> out;
  char text[512];
  for (std::size_t at = 0; at < code.size(); at += out.back().size) {
    const Bytes rest = code.subspan(at);
    const std::size_t size = state_->api.instruction(state_->context, const_cast<std::uint8_t*>(rest.data()),
                                                     rest.size(), address + at, text, sizeof text);
    if (size == 0) out.push_back(raw_word(rest, address + at));
    else out.push_back({address + at, static_cast<std::uint32_t>(size), without_literal_marks(trimmed(text))});
  }
  return out;
}

}  // namespace amdsim::object
