"""Hand-written lowerings of small kernels, and a fake driver to launch them on."""

from __future__ import annotations

import contextlib
import shutil
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import warpwave as ww
from warpwave import bf16, f32, gl, i64, st
from warpwave.backends.nvidia import program
from warpwave.backends.nvidia.arch import SM90A, Target
from warpwave.backends.nvidia.lowered import Lowered, TensorMap
from warpwave.backends.nvidia.program import NvidiaProgram
from warpwave.backends.nvidia.runtime import devices, driver, memory
from warpwave.backends.nvidia.tests.fake_cuda import FakeCuda
from warpwave.tiles.ir import Kernel, walk
from warpwave.tiles.runtime.arrays import Array, borrow

CUDA_0 = "dlpack2:0"
HOST = Path(__file__).parent / "host"  # device code's tests that run on the host


@ww.kernel
def scale(x: gl[f32], y: gl[f32], factor: f32, *, B=32):
    """y = factor * x"""
    m, n = ww.grid(ww.cdiv(x.rows, B), ww.cdiv(x.cols, B))
    ww.store(y, (m, n), ww.load(x, (m, n), st[f32, B, B]) * factor)


@ww.kernel
def checked(x: gl[f32], y: gl[f32], limit: f32, seed: i64, flag: bool, *, B=32):
    """y = x, whose first element must be below a limit."""
    m, n = ww.grid(ww.cdiv(x.rows, B), ww.cdiv(x.cols, B))
    ww.check(m < 100000, "too many rows")
    ww.store(y, (m, n), ww.load(x, (m, n), st[f32, B, B]))


@ww.kernel
def copy4(x: gl[bf16], y: gl[bf16], *, B=64):
    """y = x, of four dimensions."""
    b, h, m, n = ww.grid(x.shape[0], x.shape[1], ww.cdiv(x.rows, B), ww.cdiv(x.cols, B))
    ww.store(y, (b, h, m, n), ww.load(x, (b, h, m, n), st[bf16, B, B]))


STRUCTS = """
template <typename T, int N> struct tensor { T *data; long long strides[N]; int extents[N]; };
struct grid_sizes { int sizes[4]; };
"""

# What a lowering of `scale` could look like: one thread an element, blocks of the grid in row-major order.
SCALE_BODY = """
  const int m = blockIdx.x / grid.sizes[1], n = blockIdx.x %% grid.sizes[1];
  for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) {
    const int r = m * 32 + i / 32, c = n * 32 + i %% 32;
    if (r < x.extents[0] && c < x.extents[1]) {
#line %d "%s"
      y.data[r * y.strides[0] + c * y.strides[1]] = factor * x.data[r * x.strides[0] + c * x.strides[1]];
    }
  }
"""


def host_compiler() -> str | None:
    """A C++ compiler on the PATH."""
    return next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)


def ir_of(kernel: Any, *arguments: Any, **constants: Any) -> Kernel:
    """The IR of a kernel for these arguments."""
    return kernel.compile(*arguments, target="reference", **constants).ir


def lowered_scale() -> tuple[Kernel, Lowered]:
    """`scale` and a lowering of it."""
    x = np.zeros((1, 1), np.float32)
    kernel = ir_of(scale, x, x, 1.0)
    store = next(op for op in walk(kernel.body) if op.name == "store")
    head = (
        STRUCTS + 'extern "C" __global__ void __launch_bounds__(128) scale(tensor<float, 2> x, tensor<float, 2> y, '
        "float factor, grid_sizes grid, int *status) {"
    )
    built = head + SCALE_BODY % (store.loc.line, store.loc.file) + "}\n"
    source = "\n".join(line for line in built.splitlines() if not line.startswith("#line")) + "\n"
    return kernel, Lowered(source, built, "scale", 128, 0, 1, False, (), ("by hand",), (), ())


def program_of(kernel: Kernel, lowered: Lowered, target: Target = SM90A, **changes: Any) -> NvidiaProgram:
    """A program with some of its lowering's fields changed."""
    return NvidiaProgram(kernel, target, replace(lowered, **changes))


def unbuilt(kernel: Kernel, target: Target = SM90A, **changes: Any) -> NvidiaProgram:
    """A program whose code is never looked at: for launches on the fake driver."""
    checks = tuple(op for op in walk(kernel.body) if op.name == "check")
    program = program_of(kernel, Lowered("", "", kernel.name, 128, 0, 1, False, (), (), checks, ()), target, **changes)
    program.launcher._planner.functions.__dict__["code_for"] = lambda wide, tma, device: f"{wide:x} {tma:x}".encode()
    return program


def tile_map(param: str, axes: tuple[int, int], **changes: Any) -> TensorMap:
    """A map of 64 x 64 tiles."""
    return replace(TensorMap(param, axes, 64, 64, 128), **changes)


def on_gpu(array: np.ndarray, device: str = CUDA_0, owner: Any = None) -> Array:
    """An array that claims to be on a device; its memory is the host's, as the fake driver's is."""
    host = borrow(array)
    return replace(host, device=device, host=None, owner=owner if owner is not None else array)


@contextlib.contextmanager
def faked(fake: FakeCuda, monkeypatch: Any) -> Iterator[FakeCuda]:
    """The fake instead of cuda-bindings, as if a driver were there."""
    caches = (driver.module, devices.devices, memory._pool, program._copier)
    memory._workspaces.clear()
    with monkeypatch.context() as patch:
        for cache in caches:
            cache.cache_clear()
        patch.setattr(driver, "module", lambda: fake)
        patch.setattr(driver, "may_have_devices", lambda: True)
        try:
            yield fake
        finally:
            memory._workspaces.clear()
            for cache in caches[1:]:
                cache.cache_clear()


def library(name: str, **contents: Any) -> tuple[Any, Any]:
    """A module and an object of a class of it, as the owner of an array."""
    module = types.ModuleType(name)
    module.__dict__.update(contents)
    kind = type("Tensor", (), {"__module__": name})
    return module, kind()


def pretend_torch(monkeypatch: Any) -> Any:
    """A tensor of a module that passes for PyTorch, whose current stream on device n is 0x700 + n."""
    raw = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda ordinal: 0x700 + ordinal)
    module, owner = library("torch", _C=raw)
    monkeypatch.setitem(sys.modules, "torch", module)
    return owner
