#include "vop.hpp"

namespace amdsim {

void register_valu_packed(Registry&) {}

}  // namespace amdsim
