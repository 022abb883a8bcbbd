"""Arrays of a GPU's memory that hold copies of host arrays, strides kept, whatever their dtype.

CuPy and DLPack know neither bf16 nor all fp8 formats on every version; so memory is allocated as bytes and
described to the runtime by its own `Array`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import BY_NUMPY
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.runtime import registry
from warpwave.tiles.runtime.arrays import Array

Host = npt.NDArray[Any]
CUDA, ROCM = "dlpack2:0", "dlpack10:0"
ALIGNMENT = 256


@dataclass(frozen=True)
class Memory:
    """One library's bytes on a device: upload gives an owner and its address, download reads it back."""

    upload: Callable[[Host], tuple[Any, int]]
    download: Callable[[Any], Host]


def device_of(target: str) -> str | None:
    """The device whose arrays the target's backend takes, or None for host memory (simulators, NumPy)."""
    backend = registry.resolve(target)
    here = next((t.runs for t in backend.targets() if t.name == target), "")
    if target.endswith(registry.SIMULATED) or "simulator" in here:
        return None
    return next((d for d in (CUDA, ROCM) if backend.target_for(d) == target), None)


class DeviceArrays:
    """Device copies of some host arrays, and their way back."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._memory = _memory(device)
        self._copies: list[tuple[Host, Any, int]] = []

    def upload(self, array: Host) -> Array:
        """A device array with the same elements and strides."""
        low, high = np.lib.array_utils.byte_bounds(array) if array.size else (0, 1)
        origin = array.__array_interface__["data"][0] - low if array.size else 0
        start = low % ALIGNMENT  # the same alignment as on the host, so that a case means the same everywhere
        image = np.zeros(start + high - low, np.uint8)
        view = np.ndarray(array.shape, array.dtype, image, start + origin, array.strides) if array.size else array
        view[...] = array
        owner, address = self._memory.upload(image)
        self._copies.append((array, owner, start + origin))
        strides = tuple(s // array.itemsize for s in array.strides)
        return Array(BY_NUMPY[array.dtype], array.shape, strides, self.device, address + start + origin, owner)

    def download(self) -> None:
        """Write every device array back into the host array that it was made from."""
        for array, owner, offset in self._copies:
            if array.size:
                image = self._memory.download(owner)
                array[...] = np.ndarray(array.shape, array.dtype, image, offset, array.strides)


def _memory(device: str) -> Memory:
    names = ("cupy", "torch") if device == CUDA else ("torch", "cupy")
    for name in names:
        try:
            library = importlib.import_module(name)
        except ImportError:
            continue
        return _cupy(library) if name == "cupy" else _torch(library)
    raise UnsupportedError(f"memory on {device} needs CuPy or PyTorch", hint="pip install cupy-cuda12x")


def _cupy(cupy: Any) -> Memory:
    def upload(image: Host) -> tuple[Any, int]:
        owner = cupy.asarray(image)
        return owner, int(owner.data.ptr)

    return Memory(upload, lambda owner: np.asarray(cupy.asnumpy(owner)))


def _torch(torch: Any) -> Memory:
    def upload(image: Host) -> tuple[Any, int]:
        owner = torch.from_numpy(image).cuda()
        return owner, int(owner.data_ptr())

    def download(owner: Any) -> Host:
        torch.cuda.synchronize()
        return np.asarray(owner.cpu().numpy())

    return Memory(upload, download)
