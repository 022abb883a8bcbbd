"""NVRTC, NVIDIA's compiler as a library, through the packages nvidia-cuda-nvrtc and cuda-bindings."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

from warpwave.backends.nvidia.nvcc import CompileFailed

OLDEST = (12, 0)  # C++20 and sm_90a


@functools.lru_cache(maxsize=1)
def _library() -> Any:
    """The module `cuda.bindings.nvrtc` if it and the library behind it can be loaded, else None."""
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.bindings") is None:
        return None
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (
        Exception
    ):  # ImportError, or the bindings' own errors if libnvrtc cannot be loaded; `doctor` names the remedy
        return None
    return nvrtc


@functools.lru_cache(maxsize=1)
def version() -> str:
    """Name and version of the installed NVRTC, empty if there is none that is new enough."""
    library = _library()
    if library is None:
        return ""
    _, major, minor = library.nvrtcVersion()
    return f"NVRTC {major}.{minor} build {_build()}" if (major, minor) >= OLDEST else ""


def _build() -> str:
    """The package's full version, since NVRTC itself tells only two numbers."""
    from importlib.metadata import PackageNotFoundError, version

    for package in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"):
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    return "of a toolkit"


def compile_source(source: str, name: str, options: tuple[str, ...]) -> tuple[bytes, str, str]:
    """Cubin, PTX and log; CompileFailed with the compiler's messages."""
    library = _library()
    program = _checked(library, library.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], []))
    try:
        status = library.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])[0]
        log = _read(library, program, library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog)
        text = log.rstrip(b"\0").decode(errors="replace").strip()
        if status != library.nvrtcResult.NVRTC_SUCCESS:
            raise CompileFailed(text or str(status))
        cubin = _read(library, program, library.nvrtcGetCUBINSize, library.nvrtcGetCUBIN)
        ptx = _read(library, program, library.nvrtcGetPTXSize, library.nvrtcGetPTX)
        return cubin, ptx.rstrip(b"\0").decode(errors="replace"), text
    finally:
        library.nvrtcDestroyProgram(program)


def _read(library: Any, program: Any, size_of: Callable[..., Any], get: Callable[..., Any]) -> bytes:
    # The bindings write into a `bytes` of ours. Never one of a single byte: Python shares those.
    size = _checked(library, size_of(program))
    buffer = bytes(max(size, 2))
    _checked(library, get(program, buffer))
    return buffer[:size]


def _checked(library: Any, result: tuple[Any, ...]) -> Any:
    status, *values = result
    if status != library.nvrtcResult.NVRTC_SUCCESS:
        raise CompileFailed(f"NVRTC: {status}")
    return values[0] if values else None
