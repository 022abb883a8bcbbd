#include "vop.hpp"

namespace amdsim {

void register_valu_cmp(Registry&) {}

}  // namespace amdsim
