// How an exported function is declared: C linkage, visible although the library hides everything else.
#pragma once

#define HIP_API extern "C" __attribute__((visibility("default"))) int
#define WARPWAVE_API extern "C" __attribute__((visibility("default")))
