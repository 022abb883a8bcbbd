#include "descriptor.hpp"

namespace amdsim::object {
namespace {

struct Field {
  const char* name;
  unsigned low, width;
};

constexpr Field kProperties[] = {
    {"user_sgpr_dispatch_ptr", 1, 1},         {"user_sgpr_queue_ptr", 2, 1},
    {"user_sgpr_kernarg_segment_ptr", 3, 1},  {"user_sgpr_dispatch_id", 4, 1},
    {"user_sgpr_private_segment_size", 6, 1}, {"uses_dynamic_stack", 11, 1},
};

constexpr Field kPreload[] = {
    {"user_sgpr_kernarg_preload_length", 0, 7},
    {"user_sgpr_kernarg_preload_offset", 7, 9},
};

constexpr Field kRsrc2[] = {
    {"enable_private_segment", 0, 1},      {"user_sgpr_count", 1, 5},
    {"system_sgpr_workgroup_id_x", 7, 1},  {"system_sgpr_workgroup_id_y", 8, 1},
    {"system_sgpr_workgroup_id_z", 9, 1},  {"system_sgpr_workgroup_info", 10, 1},
    {"system_vgpr_workitem_id", 11, 2},    {"exception_fp_ieee_invalid_op", 24, 1},
    {"exception_fp_denorm_src", 25, 1},    {"exception_fp_ieee_div_zero", 26, 1},
    {"exception_fp_ieee_overflow", 27, 1}, {"exception_fp_ieee_underflow", 28, 1},
    {"exception_fp_ieee_inexact", 29, 1},  {"exception_int_div_zero", 30, 1},
};

constexpr Field kRsrc1[] = {
    {"float_round_mode_32", 12, 2},  {"float_round_mode_16_64", 14, 2},
    {"float_denorm_mode_32", 16, 2}, {"float_denorm_mode_16_64", 18, 2},
    {"dx10_clamp", 21, 1},           {"ieee_mode", 23, 1},
    {"fp16_overflow", 26, 1},
};

constexpr Field kRsrc3[] = {{"tg_split", 16, 1}};

using Directives = std::vector<std::pair<std::string, std::uint32_t>>;

template <std::size_t N>
void append(Directives& out, const Field (&fields)[N], std::uint32_t word) {
  for (const Field& f : fields) out.emplace_back(f.name, word >> f.low & ((1u << f.width) - 1));
}

}  // namespace

Descriptor descriptor(Bytes data) {
  Reader in(data, "kernel descriptor");
  Descriptor d;
  d.group_segment = in.u32();
  d.private_segment = in.u32();
  d.kernarg_size = in.u32();
  in.seek(16);
  d.entry_offset = in.get<std::int64_t>();
  in.seek(44);
  d.rsrc3 = in.u32();
  d.rsrc1 = in.u32();
  d.rsrc2 = in.u32();
  d.properties = in.u16();
  d.preload = in.u16();
  return d;
}

Directives directives(const Descriptor& d) {
  Directives out = {{"group_segment_fixed_size", d.group_segment},
                    {"private_segment_fixed_size", d.private_segment},
                    {"kernarg_size", d.kernarg_size}};
  append(out, kProperties, d.properties);
  append(out, kPreload, d.preload);
  append(out, kRsrc2, d.rsrc2);
  // The descriptor holds granules, so this is what the wave is given, not what the source asked for.
  out.emplace_back("next_free_vgpr", d.vector_registers());
  out.emplace_back("next_free_sgpr", d.scalar_registers());
  out.emplace_back("accum_offset", d.accum_offset());
  append(out, kRsrc1, d.rsrc1);
  append(out, kRsrc3, d.rsrc3);
  return out;
}

}  // namespace amdsim::object
