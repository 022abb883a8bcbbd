// The only file of the core that sees Python.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "arith/bind/bind_arith.hpp"
#include "core/machine.hpp"
#include "core/registry.hpp"
#include "object/program.hpp"

namespace py = pybind11;
using namespace amdsim;

namespace {

object::LlvmLibrary library(const std::string& path) {
  return {path, object::folder_of(reinterpret_cast<const void*>(&library), "sysdeps")};
}

// Names in a damaged object may be any bytes.
py::str readable(const std::string& text) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "backslashreplace"));
}

// The assembly of a code object, with kernel descriptors and metadata, as the disassembler gives it.
py::str disassembly(const std::string& bytes, const std::string& target, const std::string& llvm) {
  const object::CodeObject object = object::read({bytes.begin(), bytes.end()}, target);
  return readable(object::assembly(object, object::disassemble(object, library(llvm)), 0));
}

// One program loaded into a machine of its own; every launch maps the arrays it is given.
class PyProgram {
 public:
  explicit PyProgram(std::unique_ptr<Program> program) : program_(std::move(program)), machine_(*program_->target) {
    machine_.load(*program_);
  }
  static std::unique_ptr<PyProgram> from_text(const std::string& text, const std::string& target) {
    return std::make_unique<PyProgram>(Program::from_text(text, target));
  }
  static std::unique_ptr<PyProgram> from_code_object(const std::string& bytes, const std::string& target,
                                                     const std::string& llvm) {
    const object::CodeObject object = object::read({bytes.begin(), bytes.end()}, target);
    if (!target.empty() && target != object.target) throw LoadError("the code object is for " + object.target + ", not " + target);
    return std::make_unique<PyProgram>(object::make_program(object, library(llvm)));
  }

  py::dict launch(const std::string& kernel, std::array<u32, 3> grid, std::array<u32, 3> block, const py::list& args,
                  u32 dynamic_lds, u64 seed, int threads, const std::vector<std::string>& relax, u64 max_instructions,
                  std::pair<i64, int> trace, const std::string& accumulate, std::vector<u64> record) {
    LaunchConfig config;
    if (accumulate != "cdna3" && accumulate != "sequential-rne")
      throw std::invalid_argument("accumulate is 'cdna3' or 'sequential-rne', not '" + accumulate + "'");
    config.sequential_accumulate = accumulate == "sequential-rne";
    config.trace_group = trace.first, config.trace_wave = trace.second, config.record_groups = std::move(record);
    config.kernel = kernel;
    for (std::size_t i = 0; i < 3; ++i) config.grid[i] = grid[i], config.block[i] = block[i];
    config.dynamic_lds = dynamic_lds, config.seed = seed, config.threads = threads, config.max_instructions = max_instructions;
    for (const std::string& name : relax) config.relaxed |= 1u << static_cast<int>(check_from_name(name));
    Mapped mapped(machine_.memory());
    for (std::size_t i = 0; i < args.size(); ++i) mapped.append(args[i], i, config.kernarg);
    Report report;
    {
      py::gil_scoped_release release;
      report = machine_.launch(*program_, config);
    }
    return to_dict(report);
  }

  // What the timing model needs of each instruction: see sim/timing.
  py::list facts() const {
    py::list all;
    for (const Inst& in : program_->code) {
      py::dict d;
      d["name"] = in.desc->name, d["flags"] = in.flags, d["passes"] = in.passes, d["imm"] = in.imm;
      d["vread"] = ranges(in.vread, in.n_vread), d["vwrite"] = ranges(in.vwrite, in.n_vwrite);
      d["sread"] = ranges(in.sread, in.n_sread), d["swrite"] = ranges(in.swrite, in.n_swrite);
      const bool matrix = in.flags & kMfma;
      const RegRange c = matrix && in.src[2].is_vgpr() ? RegRange{in.src[2].reg, in.src[2].dwords} : RegRange{};
      d["accumulator"] = py::make_tuple(c.first, c.count);
      d["operand_bytes"] = matrix ? 4 * std::max(in.src[0].dwords, in.src[1].dwords) : 0;
      d["line"] = in.line, d["text"] = in.text, d["source"] = program_->source_of(in);
      all.append(d);
    }
    return all;
  }

  std::string target() const { return std::string(program_->target->name); }
  py::str metadata() const { return readable(program_->metadata); }
  std::vector<std::string> kernels() const {
    std::vector<std::string> names;
    for (const auto& [name, kernel] : program_->kernels) names.push_back(name);
    return names;
  }

 private:
  // Buffers of one launch: unmapped when it ends, in every way it can end.
  struct Mapped {
    explicit Mapped(GlobalMemory& m) : memory(m) {}
    ~Mapped() {
      for (u64 address : addresses) memory.unmap(address);
    }
    // (address-sized buffer) or (raw bytes, alignment): see _program.py
    void append(const py::handle& arg, std::size_t index, std::vector<u8>& kernarg) {
      auto pair = arg.cast<py::tuple>();
      py::buffer_info info = pair[0].cast<py::buffer>().request(pair[2].cast<bool>());
      const bool is_buffer = pair[1].cast<int>() == 0;
      const auto bytes = static_cast<std::size_t>(info.size * info.itemsize);
      if (!is_buffer) return put(kernarg, info.ptr, bytes, static_cast<std::size_t>(pair[1].cast<int>()));
      u64 address = 0;
      if (bytes) addresses.push_back(address = memory.map(info.ptr, bytes, "argument " + std::to_string(index), pair[2].cast<bool>()));
      if (bytes && pair[3].cast<bool>()) memory.slot(address)->uninit.assign((bytes + 63) / 64, ~0ull);
      put(kernarg, &address, 8, 8);
    }
    static void put(std::vector<u8>& kernarg, const void* p, std::size_t bytes, std::size_t align) {
      kernarg.resize((kernarg.size() + align - 1) / align * align);
      const auto* b = static_cast<const u8*>(p);
      kernarg.insert(kernarg.end(), b, b + bytes);
    }
    GlobalMemory& memory;
    std::vector<u64> addresses;
  };

  static py::list ranges(const RegRange* first, int count) {
    py::list all;
    for (int i = 0; i < count; ++i) all.append(py::make_tuple(first[i].first, first[i].count));
    return all;
  }

  py::dict to_dict(const Report& r) const {
    py::dict d;
    d["kernel"] = r.kernel, d["target"] = r.target, d["instructions"] = r.instructions, d["seconds"] = r.seconds;
    d["waves"] = r.counts.waves, d["workgroups"] = r.counts.workgroups, d["barriers"] = r.counts.barriers;
    d["vgprs"] = r.vgprs, d["agprs"] = r.agprs, d["sgprs"] = r.sgprs, d["lds_bytes"] = r.lds_bytes;
    d["scratch_bytes"] = r.scratch_bytes, d["waves_per_group"] = r.waves_per_group;
    d["occupancy"] = r.occupancy_waves_per_simd;
    py::list insts;
    for (std::size_t i = 0; i < r.counts.insts.size(); ++i) {
      const InstCounts& c = r.counts.insts[i];
      const Inst& in = program_->code[i];
      insts.append(py::make_tuple(in.line, in.text, program_->source_of(in), in.flags, c.executed, c.active_lanes, c.bytes,
                                  c.lines, c.lds_cycles, c.lds_ideal));
    }
    d["insts"] = insts;
    py::list trace;
    for (const TraceStep& s : r.trace.steps) trace.append(py::make_tuple(s.inst, s.exec, s.scc, s.results));
    d["trace"] = trace;
    d["recordings"] = recordings(r);
    return d;
  }

  // Per recorded workgroup its steps, one bytes object of Step per wave.
  static py::list recordings(const Report& r) {
    py::list groups;
    for (const Recording& g : r.recordings) {
      py::list waves;
      for (const auto& w : g.waves) waves.append(py::bytes(reinterpret_cast<const char*>(w.data()), w.size() * sizeof(Step)));
      groups.append(py::make_tuple(g.group, waves));
    }
    return groups;
  }

  std::unique_ptr<Program> program_;
  Machine machine_;
};

py::dict violation_dict(const Violation& v) {
  py::dict d;
  d["kind"] = v.kind, d["reason"] = v.reason, d["instruction"] = v.instruction, d["asm_line"] = v.asm_line;
  d["source"] = v.source, d["kernel"] = v.kernel, d["wave"] = v.wave;
  d["workgroup"] = py::make_tuple(v.workgroup[0], v.workgroup[1], v.workgroup[2]);
  d["lanes"] = v.lanes, d["registers"] = v.registers, d["other"] = v.other;
  d["address"] = v.has_address ? py::object(py::int_(v.address)) : py::object(py::none());
  return d;
}

}  // namespace

PYBIND11_MODULE(_sim, m) {
  static py::object sim_error = py::module_::import("warpwave.backends.amd.sim._errors").attr("SimError");
  static py::object load_error = py::module_::import("warpwave.backends.amd.sim._errors").attr("LoadError");
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const SimError& e) {
      PyErr_SetObject(sim_error.ptr(), py::make_tuple(e.what(), violation_dict(e.violation())).ptr());
    } catch (const LoadError& e) {
      PyErr_SetObject(load_error.ptr(), readable(e.what()).ptr());
    }
  });
  py::class_<PyProgram>(m, "Program")
      .def(py::init(&PyProgram::from_text))
      .def_static("from_code_object",
                  [](const py::bytes& data, const std::string& target, const std::string& llvm) {
                    return PyProgram::from_code_object(data, target, llvm);
                  })
      .def("launch", &PyProgram::launch, py::arg("kernel"), py::arg("grid"), py::arg("block"), py::arg("args"),
           py::arg("dynamic_lds"), py::arg("seed"), py::arg("threads"), py::arg("relax"), py::arg("max_instructions"),
           py::arg("trace"), py::arg("accumulate") = "cdna3", py::arg("record") = std::vector<u64>{})
      .def("facts", &PyProgram::facts)
      .def_property_readonly("target", &PyProgram::target)
      .def_property_readonly("metadata", &PyProgram::metadata)
      .def_property_readonly("kernels", &PyProgram::kernels);
  arith::bind_arith(m);
  m.def("disassemble", [](const py::bytes& data, const std::string& target, const std::string& llvm) {
    return disassembly(data, target, llvm);
  });
  m.def("check_names", [] {
    std::vector<std::string> names;
    for (int i = 0; i < kChecks; ++i) names.emplace_back(check_name(static_cast<Check>(i)));
    return names;
  });
  m.def("mnemonics", [] { return Registry::instance().names(); });
}
