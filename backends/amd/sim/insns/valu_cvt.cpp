#include "vop.hpp"

namespace amdsim {

void register_valu_cvt(Registry&) {}

}  // namespace amdsim
