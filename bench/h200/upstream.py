"""Upstream ThunderKittens as a peer: its own H100 kernels behind C functions, built from a checkout of it.

    python -m warpwave.bench.h200.upstream CHECKOUT LIBRARY.so     # needs nvcc, no GPU
    python -m warpwave.bench.h200.run --upstream LIBRARY.so

Measured are the bf16 GEMM (a @ b, whole tiles only) and the forward attention of the `lcf` template (full, one key
head for each query head). Its other attention kernel is right only for sequences of a multiple of 384
(facts: thunderkittens.md 3), which none of the measured lengths is.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from warpwave.backends.nvidia import nvcc

FLAGS = (
    "-std=c++20", "-O3", "--use_fast_math", "--expt-extended-lambda", "--expt-relaxed-constexpr", "-DNDEBUG",
    "-DKITTENS_HOPPER", "-gencode", "arch=compute_90a,code=sm_90a", "-Xcompiler=-fno-strict-aliasing",
    "-shared", "-Xcompiler=-fPIC", "-lcudart_static", "-ldl", "-lrt", "-lpthread", "-w",
)  # fmt: skip
TILE_M, TILE_N, TILE_K = 128, 256, 64

GEMM = """
#define main upstream_main
#include "bf16_h100_gemm.cu"
#undef main
template <typename T> static void launch(bf16 *a, bf16 *b, bf16 *c, size_t m, size_t n, size_t k) {
  constexpr int memory = MAX_SHARED_MEMORY - 1024;
  cudaFuncSetAttribute(prototype::lcf::kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, memory);
  inner_run<T>(a, b, c, m, n, k, T::grid(m, n, k), dim3(kittens::prototype::detail::NUM_THREADS_v<T>));
}
extern "C" int upstream_gemm(bf16 *a, bf16 *b, bf16 *c, size_t m, size_t n, size_t k) {
  if (k >= 16384) launch<matmul_template<2, 4, 12>>(a, b, c, m, n, k);
  else launch<matmul_template<2, 4, 8>>(a, b, c, m, n, k);
  return cudaGetLastError();
}
"""

ATTENTION = """
#include <chrono>
#define main upstream_main
#include "mha_h100_lcf.cu"
#undef main
template <int D> static int launch(bf16 *q, bf16 *k, bf16 *v, bf16 *o, size_t b, size_t h, size_t n) {
  using T = attn_fwd_template<D>;
  typename T::layout::qo_global Q(q, b, h, n, nullptr), O(o, b, h, n, nullptr);
  typename T::layout::kv_global K(k, b, h, n, nullptr), V(v, b, h, n, nullptr);
  typename T::layout::globals all = {O, Q, K, V};
  const unsigned long memory = kittens::MAX_SHARED_MEMORY - 2000;
  cudaFuncSetAttribute(prototype::lcf::kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, memory);
  prototype::lcf::kernel<T><<<132, prototype::detail::NUM_THREADS_v<T>, memory>>>(all);
  return cudaGetLastError();
}
extern "C" int upstream_attention(bf16 *q, bf16 *k, bf16 *v, bf16 *o, size_t b, size_t h, size_t n, int d) {
  return d == 128 ? launch<128>(q, k, v, o, b, h, n) : launch<64>(q, k, v, o, b, h, n);
}
"""
SOURCES = {"gemm": ("kernels/gemm/bf16_h100", GEMM), "attention": ("kernels/attention/mha_h100_lcf", ATTENTION)}


def build(checkout: Path, library: Path) -> None:
    """Compile both wrappers into one folder of libraries named after `library`."""
    for name, (folder, source) in SOURCES.items():
        with tempfile.TemporaryDirectory() as temporary:
            wrapper = Path(temporary) / f"{name}.cu"
            wrapper.write_text(source)
            include = [f"-I{checkout / part}" for part in ("include", "prototype", folder)]
            out = str(_part(library, name))
            subprocess.run([nvcc.find(), *FLAGS, *include, "-o", out, str(wrapper)], check=True)


def _part(library: Path, name: str) -> Path:
    return library.with_name(f"{library.stem}_{name}{library.suffix}")


@cache
def _function(library: str, name: str) -> Callable[..., int]:
    ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)  # not linked, so that it builds where there is no driver
    loaded = ctypes.CDLL(str(_part(Path(library).resolve(), name)))
    function: Callable[..., int] = loaded[f"upstream_{name}"]
    return function


_chosen: list[str] = []


def use(library: str) -> None:
    """Measure these libraries' kernels too."""
    _chosen[:] = [library] if library else []


def gemm(torch: Any, a: Any, b: Any, m: int, n: int, k: int) -> dict[str, Callable[[], Any]]:
    """The peer for c[m, n] = a[m, k] @ b[k, n], if it can do this shape."""
    if not _chosen or m % TILE_M or n % TILE_N or k % TILE_K:
        return {}
    function, right = _function(_chosen[0], "gemm"), b.contiguous()
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    sizes = [ctypes.c_size_t(x) for x in (m, n, k)]
    return {"upstream TK": lambda: _run(function, [a, right, c], *sizes)}


def attention(torch: Any, q: Any, k: Any, v: Any, causal: bool) -> dict[str, Callable[[], Any]]:
    """The peer for attention forward, if it can do this shape."""
    if not _chosen or causal or q.shape != k.shape:
        return {}
    function, out = _function(_chosen[0], "attention"), torch.empty_like(q)
    batch, heads, n, width = q.shape
    sizes = [ctypes.c_size_t(x) for x in (batch, heads, n)]
    return {"upstream TK lcf": lambda: _run(function, [q, k, v, out], *sizes, ctypes.c_int(width))}


def _run(function: Callable[..., int], tensors: list[Any], *sizes: Any) -> None:
    """Tensors are owned by the caller's closure; the launch goes to the default stream."""
    status = function(*[ctypes.c_void_p(t.data_ptr()) for t in tensors], *sizes)
    if status:
        raise RuntimeError(f"the launch failed with CUDA error {status}")


def main() -> int:
    """Build."""
    parser = argparse.ArgumentParser(description="Build ThunderKittens' H100 kernels as peers")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("library", type=Path)
    args = parser.parse_args()
    build(args.checkout.resolve(), args.library)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
