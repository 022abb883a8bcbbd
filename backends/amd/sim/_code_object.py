"""Code objects: recognising them, finding LLVM's disassembler, and their assembly text."""

from __future__ import annotations

import importlib.util
import os
from functools import lru_cache
from pathlib import Path

from warpwave.backends.amd.sim import _sim

_MAGICS = (b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")


def is_code_object(data: bytes) -> bool:
    """Whether the bytes begin like an ELF file or a clang offload bundle."""
    return data.startswith(_MAGICS)


@lru_cache(maxsize=1)
def find_llvm() -> str:
    """Path of a libLLVM with the AMDGPU disassembler, or "" when there is none.

    Looked for in this order: $WARPWAVE_LLVM, the rocm-bindings-compiler wheel, a ROCm installation.
    """
    named = os.environ.get("WARPWAVE_LLVM", "")
    if named:
        return named
    return next((str(path) for path in _candidates() if path.exists()), "")


def _candidates() -> list[Path]:
    found = []
    if importlib.util.find_spec("rocm") and (spec := importlib.util.find_spec("rocm.bindings")):
        found += [Path(folder) / "llvm" / "libLLVM.so" for folder in spec.submodule_search_locations or ()]
    rocm = Path(os.environ.get("ROCM_PATH", "/opt/rocm"))
    for folder in (rocm / "lib" / "llvm" / "lib", rocm / "llvm" / "lib"):
        found += [folder / "libLLVM.so", *sorted(folder.glob("libLLVM.so.*"))]
    return found


def disassemble(code: bytes | str | os.PathLike[str], target: str = "") -> str:
    """Assembly text of a code object, in the form of `clang -S`, with addresses in comments.

    `target` picks the entry of an offload bundle; a plain code object names its own.
    """
    data = code if isinstance(code, bytes) else Path(code).read_bytes()
    return str(_sim.disassemble(data, target, find_llvm()))
