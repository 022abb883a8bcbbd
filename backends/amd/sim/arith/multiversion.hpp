// Function multiversioning where the toolchain has it. Every version computes the same bits: the loops it is
// put on use only exact or correctly rounded operations, so the host's instruction set changes speed, never
// results.
#pragma once

#include <cstddef>  // defines __GLIBC__ where it applies

#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && (defined(__GNUC__) || defined(__clang__))
#define WARPWAVE_MULTIVERSION __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define WARPWAVE_MULTIVERSION
#endif

// Clang has no multiversioned function templates, and does not emit implicit constructors and destructors that only a
// multiversioned function calls (seen with Clang 22): such functions have versions with GCC alone.
#if defined(__clang__)
#define WARPWAVE_MULTIVERSION_GCC
#define WARPWAVE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define WARPWAVE_MULTIVERSION_GCC WARPWAVE_MULTIVERSION
#define WARPWAVE_INDEPENDENT _Pragma("GCC ivdep")  // iterations of the loop that follows do not depend on each other
#endif

#define WARPWAVE_INLINE inline __attribute__((always_inline))
