"""Loads the simulator's HIP runtime into the process, where hip-python then finds it by name."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from warpwave.backends.amd.sim import _sim
from warpwave.backends.amd.sim._code_object import find_llvm
from warpwave.backends.amd.sim._options import relaxed

# Beside the compiled core, which an editable install keeps elsewhere than the Python files.
FOLDER = Path(str(_sim.__file__)).resolve().parent / "hip"
LIBRARY = FOLDER / "lib" / "libamdhip64.so"


class HipRuntimeError(RuntimeError):
    """The runtime cannot be loaded or configured."""


@dataclass(frozen=True)
class HipRuntime:
    """The loaded library: `last_report()` says in full why the latest call or launch failed."""

    library: ctypes.CDLL
    target: str
    devices: int

    def last_report(self) -> str:
        """Report of the most recent failure in the process."""
        return bytes(self.library.warpwaveSimLastReport()).decode()


def hip_runtime(target: str = "gfx950", devices: int = 1, *, relax: Iterable[str] = (), seed: int = 0) -> HipRuntime:
    """Make the simulator this process's HIP runtime.

    To be called before `hip` is first used: a library named libamdhip64.so that is already loaded is what
    hip-python opens. Device memory is host memory, so allocate no more than the machine has.
    """
    _refuse_another_runtime()
    library = ctypes.CDLL(str(LIBRARY), mode=ctypes.RTLD_GLOBAL)
    library.warpwaveSimLastReport.restype = ctypes.c_char_p
    configure = library.warpwaveSimConfigure
    configure.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64]
    names = ",".join(relaxed(relax, _sim.check_names()))
    code = configure(target.encode(), devices, find_llvm().encode(), names.encode(), seed)
    runtime = HipRuntime(library, target, devices)
    if code:
        raise HipRuntimeError(runtime.last_report())
    return runtime


def _refuse_another_runtime() -> None:
    """hip-python prefers an installed ROCm's library over a loaded one; say so instead of running on it."""
    try:
        from rocm.bindings.util.paths import get_library_path
    except ImportError:
        return
    chosen = Path(os.fsdecode(get_library_path("amdhip64")))
    if chosen.is_absolute() and chosen.resolve() != LIBRARY.resolve():
        raise HipRuntimeError(f"hip-python would open {chosen}; set ROCM_PATH={FOLDER} to use the simulator")
