"""Host arrays in a device's memory and back, strides kept; the device here is another piece of host memory."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from warpwave.conformance.programs.memory import LAYOUTS, memory
from warpwave.conformance.runners import device as module
from warpwave.conformance.runners.device import CUDA, ROCM, DeviceArrays, Memory, device_of
from warpwave.tiles.dtypes import bf16, f32, fp8e5m2fnuz
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.runtime import registry
from warpwave.tiles.runtime.backend import Target


@pytest.fixture
def owners(monkeypatch):
    kept = []

    def upload(image):
        kept.append(image.copy())
        return kept[-1], kept[-1].ctypes.data

    monkeypatch.setattr(module, "_memory", lambda device: Memory(upload, lambda owner: owner))
    return kept


def on_device(array):
    """The elements of a device array, read as the runtime would: address, strides, dtype."""
    size = array.dtype.nbytes
    strides = tuple(s * size for s in array.strides)
    reach = [(n - 1) * s for n, s in zip(array.shape, strides, strict=True)]
    low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach) + size
    raw = (ctypes.c_uint8 * (high - low)).from_address(array.address + low)
    return np.ndarray(array.shape, array.dtype.numpy, raw, -low, strides)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [f32, bf16, fp8e5m2fnuz], ids=str)
def test_arrays_go_there_and_back(owners, layout, dtype):
    host = memory(layout, np.arange(35).reshape(5, 7).astype(dtype.numpy))
    arrays = DeviceArrays(CUDA)
    moved = arrays.upload(host)
    assert (moved.device, moved.dtype, moved.shape) == (CUDA, dtype, (5, 7))
    assert moved.address % 16 == host.__array_interface__["data"][0] % 16 or layout == "reversed"
    np.testing.assert_array_equal(on_device(moved).astype(np.float32), host.astype(np.float32))
    on_device(moved)[2, 3] = 1.5
    arrays.download()
    assert float(host[2, 3]) == 1.5
    assert float(host[2, 4]) == float(np.float32(18).astype(dtype.numpy))


def test_an_empty_array_has_an_address(owners):
    arrays = DeviceArrays(CUDA)
    assert arrays.upload(np.zeros((0, 3), np.float32)).shape == (0, 3)
    arrays.download()


class Backend:
    def __init__(self, runs, device):
        self.runs, self.device = runs, device

    def targets(self):
        return [Target("x:y", "", runs=self.runs)]

    def target_for(self, device):
        return "x:y" if device == self.device else None


@pytest.mark.parametrize(
    ("runs", "takes", "target", "device"),
    [
        ("a board", CUDA, "x:y", CUDA),
        ("a board", ROCM, "x:y", ROCM),
        ("a board", CUDA, "x:y:sim", None),
        ("simulator", CUDA, "x:y", None),
        ("NumPy", None, "x:y", None),
    ],
)
def test_which_memory_a_target_wants(monkeypatch, runs, takes, target, device):
    monkeypatch.setattr(registry, "resolve", lambda _: Backend(runs, takes))
    assert device_of(target) == device


def test_no_library_for_the_device_is_said(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(module.importlib, "import_module", missing)
    with pytest.raises(UnsupportedError, match="needs CuPy or PyTorch"):
        DeviceArrays(CUDA)
