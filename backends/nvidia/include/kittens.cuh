// The part of the ThunderKittens 2.0 API that Warpwave emits, on its own. Needs no host headers (NVRTC, nvcc).
#pragma once
#include "kittens/group.cuh"
