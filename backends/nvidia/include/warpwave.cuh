// What generated code needs beyond kittens.cuh: exact conversions, functions by the accuracy contract, predicated
// accesses, register tiles of any layout. Compiles with ours and with the upstream kittens.cuh.
#pragma once
#include <kittens.cuh>

#include "warpwave/control.cuh"
#include "warpwave/convert.cuh"
#include "warpwave/core.cuh"
#include "warpwave/items.cuh"
#include "warpwave/math.cuh"
#include "warpwave/memory.cuh"
#include "warpwave/order.cuh"
#include "warpwave/ptx/cp_async.cuh"
#include "warpwave/ptx/grids.cuh"
#include "warpwave/ptx/matrix_moves.cuh"
#include "warpwave/ptx/mma.cuh"
#include "warpwave/ptx/wgmma.cuh"
#include "warpwave/tensor_maps.cuh"
