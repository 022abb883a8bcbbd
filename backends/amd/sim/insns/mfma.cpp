#include "vop.hpp"

namespace amdsim {

void register_mfma(Registry&) {}

}  // namespace amdsim
