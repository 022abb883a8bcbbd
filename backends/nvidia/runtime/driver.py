"""The CUDA driver through cuda-bindings: finding it, calling it, and its errors as exceptions."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from warpwave.tiles.errors import LaunchError

# Linux, and Linux under Windows. Containers that hide /proc/driver still have the device nodes.
_DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia")
REMEDY = "pip install cuda-bindings"


class CudaError(LaunchError):
    """A driver call failed; `code` is CUDA's name of the error."""

    def __init__(self, code: str, text: str, call: str) -> None:
        super().__init__(f"{code} ({text}) from {call}")
        self.code = code


@cache
def module() -> Any:
    """`cuda.bindings.driver`."""
    from cuda.bindings import driver

    return driver


def is_installed() -> bool:
    """Whether cuda-bindings can be imported."""
    return importlib.util.find_spec("cuda") is not None and importlib.util.find_spec("cuda.bindings") is not None


def may_have_devices() -> bool:
    """Whether looking for devices is worth an import. CUDA_VISIBLE_DEVICES="" hides all, as it does for CUDA itself."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return False
    return any(Path(path).exists() for path in _DRIVERS)


def call(name: str, *arguments: Any) -> Any:
    """The result of a driver function; CudaError if it fails."""
    code, *results = getattr(module(), name)(*arguments)
    if code:  # an IntEnum: CUDA_SUCCESS is 0
        raise failure(code, name)
    return results[0] if len(results) == 1 else tuple(results) or None


def launch(function: Any, grid: tuple[int, int, int], threads: int, stream: int, parameter: bytearray) -> None:
    """Start a kernel of one parameter, without dynamic shared memory."""
    pointer = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(parameter)))
    call("cuLaunchKernel", function, *grid, threads, 1, 1, 0, stream, ctypes.addressof(pointer), 0)


def failure(code: Any, name: str) -> CudaError:
    """The exception for an error code."""
    _, symbol = module().cuGetErrorName(code)
    _, text = module().cuGetErrorString(code)
    return CudaError(_text(symbol), _text(text), name)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


@contextmanager
def loading_allowed() -> Iterator[None]:
    """Loading code and allocating memory are allowed although a stream may be capturing a graph."""
    relaxed = module().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = call("cuThreadExchangeStreamCaptureMode", relaxed)
    try:
        yield
    finally:
        call("cuThreadExchangeStreamCaptureMode", before)
