#include "registry.hpp"

#include <algorithm>
#include <stdexcept>

namespace amdsim {

int ty_dwords(Ty type) {
  switch (type) {
    case Ty::B64: case Ty::F64: case Ty::I64: case Ty::PkF32: case Ty::Mask: return 2;
    case Ty::B96: return 3;
    case Ty::B128: return 4;
    case Ty::B192: return 6;
    case Ty::B256: return 8;
    case Ty::B512: return 16;
    case Ty::B1024: return 32;
    case Ty::None: case Ty::Label: case Ty::Waitcnt: case Ty::Off: return 0;
    default: return 1;
  }
}

Registry::Registry() {
  for (auto* family : {register_control, register_salu, register_sopk, register_smem, register_valu_int, register_valu_int16,
                       register_valu_bits, register_valu_float, register_valu_functions, register_valu_half,
                       register_valu_cmp, register_valu_cvt, register_valu_cvt_small,
                       register_valu_packed, register_valu_dot, register_valu_move, register_mfma, register_vector_modes,
                       register_ds, register_global, register_buffer, register_scratch})
    family(*this);
}

const Registry& Registry::instance() {
  static const Registry registry;
  return registry;
}

const Desc* Registry::find(std::string_view name) const {
  auto it = table_.find(std::string(name));
  return it == table_.end() ? nullptr : &it->second;
}

void Registry::add(Desc desc) {
  if (!table_.emplace(desc.name, desc).second) throw std::logic_error("instruction registered twice: " + std::string(desc.name));
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> out;
  for (const auto& entry : table_) out.push_back(entry.first);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace amdsim
