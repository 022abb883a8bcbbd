"""hip-python: finding it, calling it, and its errors as exceptions."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any

from warpwave.tiles.errors import LaunchError

# What the HIP library is called where it is loaded: by the simulator, and by ROCm 6 and 7.
_LIBRARIES = ("libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.7")
_DRIVERS = ("/dev/kfd", "/dev/dxg")  # Linux, and Linux under Windows
REMEDY = "pip install 'hip-python>=10'"


class HipError(LaunchError):
    """A HIP call failed; `code` is HIP's name of the error."""

    def __init__(self, code: str, text: str, call: str) -> None:
        super().__init__(f"{code} ({text}) from {call}")
        self.code = code


@cache
def module() -> Any:
    """hip-python's `hip.hip`."""
    from hip import hip

    return hip


def is_installed() -> bool:
    """Whether hip-python can be imported."""
    return importlib.util.find_spec("hip") is not None


def may_have_devices() -> bool:
    """Whether looking for devices is worth an import: a driver, a HIP library in the process, or ROCM_PATH.

    HIP_VISIBLE_DEVICES=-1 hides all devices, as it does for HIP itself.
    """
    if os.environ.get("HIP_VISIBLE_DEVICES") == "-1":
        return False
    present = any(Path(path).exists() for path in _DRIVERS)
    return present or "ROCM_PATH" in os.environ or _loaded() is not None


def _loaded() -> ctypes.CDLL | None:
    """The HIP library that is already part of this process."""
    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(name, mode=os.RTLD_NOLOAD)
        except OSError:
            continue
    return None


def call(name: str, *arguments: Any) -> Any:
    """The result of a HIP function; HipError if it fails."""
    code, *results = getattr(module(), name)(*arguments)
    if code:  # an IntEnum: hipSuccess is 0
        raise failure(code, name)
    return results[0] if results else None


def failure(code: Any, name: str) -> HipError:
    """The exception for an error code, with the simulator's report where HIP is simulated."""
    _, text = module().hipGetErrorString(code)
    report = _simulator_report()
    error = HipError(code.name, as_text(text), name)
    if report:
        error.message += f"\n{report.rstrip()}"
    return error


def as_text(value: Any) -> str:
    """HIP's strings, which hip-python gives as bytes or str."""
    return value.decode() if isinstance(value, bytes) else str(value)


def is_simulated() -> bool:
    """Whether the HIP of this process is the simulator's."""
    return hasattr(_loaded(), "warpwaveSimLastReport")


def _simulator_report() -> str:
    library = _loaded()
    if library is None or not is_simulated():
        return ""
    library.warpwaveSimLastReport.restype = ctypes.c_char_p
    return bytes(library.warpwaveSimLastReport()).decode()
