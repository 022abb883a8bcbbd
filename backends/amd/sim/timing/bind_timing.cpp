// The Python module `_timing`: replays recorded steps. Typed by backends/amd/model/timing.py.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "replay.hpp"

namespace py = pybind11;
using namespace amdsim;
using namespace amdsim::timing;

namespace {

using Pairs = std::vector<std::pair<u16, u16>>;

std::vector<RegRange> ranges(const py::handle& from) {
  std::vector<RegRange> all;
  for (const auto& [first, count] : from.cast<Pairs>()) all.push_back({first, count});
  return all;
}

Facts facts_of(const py::handle& d) {
  Facts f;
  f.name = d["name"].cast<std::string>();
  f.flags = d["flags"].cast<u32>(), f.passes = d["passes"].cast<u32>(), f.imm = d["imm"].cast<i64>();
  f.operand_bytes = d["operand_bytes"].cast<u32>();
  f.reads = ranges(d["vread"]), f.writes = ranges(d["vwrite"]);
  const auto [first, count] = d["accumulator"].cast<std::pair<u16, u16>>();
  f.accumulator = {first, count};
  return f;
}

template <class T, std::size_t N>
void fill(T (&to)[N], const py::dict& d, const char* name) {
  const auto values = d[name].cast<std::vector<T>>();
  if (values.size() != N) throw py::value_error(std::string(name) + " has the wrong length");
  std::copy(values.begin(), values.end(), to);
}

Rates rates_of(const py::dict& d) {
  Rates r;
  fill(r.matrix_result, d, "matrix_result");
  r.other_matrix_result = d["other_matrix_result"].cast<u32>();
  r.trans = d["trans"].cast<u32>(), r.barrier = d["barrier"].cast<u32>(), r.branch = d["branch"].cast<u32>();
  r.lds_latency = d["lds_latency"].cast<u32>(), r.lds_in = d["lds_in"].cast<u32>(), r.lds_out = d["lds_out"].cast<u32>();
  r.lds_fill = d["lds_fill"].cast<u32>(), r.scalar_latency = d["scalar_latency"].cast<u32>();
  r.l1_latency = d["l1_latency"].cast<u32>();
  r.l1_dword = d["l1_dword"].cast<u32>(), r.l1_wider = d["l1_wider"].cast<u32>();
  r.memory_flight = d["memory_flight"].cast<u32>();
  r.memory_queue = d["memory_queue"].cast<u32>(), r.lds_queue = d["lds_queue"].cast<u32>();
  if (r.memory_queue < 1 || r.lds_queue < 1) throw py::value_error("a queue has at least one place");
  fill(r.latency, d, "latency"), fill(r.bandwidth, d, "bandwidth"), fill(r.served, d, "served");
  return r;
}

struct Work {
  std::vector<std::string> held;  // the bytes that `waves` points into
  std::vector<WaveSteps> waves;
};

// (workgroup, SIMD, steps as bytes) for each wave.
Work work_of(const py::list& list, std::size_t instructions) {
  Work work;
  for (const py::handle& item : list) work.held.push_back(item.cast<py::tuple>()[2].cast<std::string>());
  for (std::size_t i = 0; i < work.held.size(); ++i) {
    const auto item = list[i].cast<py::tuple>();
    WaveSteps w{item[0].cast<int>(), item[1].cast<int>(), reinterpret_cast<const Step*>(work.held[i].data()), work.held[i].size() / sizeof(Step)};
    if (w.simd < 0 || w.simd > 3) throw py::value_error("a compute unit has SIMDs 0 to 3");
    for (std::size_t s = 0; s < w.count; ++s)
      if (w.steps[s].inst >= instructions) throw py::index_error("a step names an instruction that the program does not have");
    work.waves.push_back(w);
  }
  return work;
}

template <class T>
py::bytes raw(const std::vector<T>& values) {
  return py::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

py::dict to_dict(const Result& r) {
  py::dict d, issued;
  for (int u = 0; u < kUnits; ++u) issued[kUnitNames[u]] = r.issued[static_cast<std::size_t>(u)];
  py::list issue;
  for (const auto& wave : r.issue) issue.append(raw(wave));
  d["clocks"] = r.clocks, d["issued"] = issued, d["issue"] = issue, d["stalls"] = raw(r.stalls);
  d["matrix_busy"] = r.matrix_busy, d["vector_busy"] = r.vector_busy, d["lds_busy"] = r.lds_busy;
  d["lds_port_busy"] = r.lds_port_busy, d["memory_busy"] = r.memory_busy, d["memory_bytes"] = r.memory_bytes;
  return d;
}

py::dict run(const py::list& facts, const py::list& waves, const py::dict& rates) {
  const Rates r = rates_of(rates);
  std::vector<Op> ops;
  for (const py::handle& f : facts) ops.push_back(make_op(facts_of(f), r));
  const Work work = work_of(waves, ops.size());
  Result result;
  {
    py::gil_scoped_release release;
    result = replay(ops, work.waves, r);
  }
  return to_dict(result);
}

}  // namespace

PYBIND11_MODULE(_timing, m) {
  m.def("replay", &run, py::arg("facts"), py::arg("waves"), py::arg("rates"));
  m.def("stall_names", [] { return std::vector<std::string>(kStallNames, kStallNames + kStalls); });
}
