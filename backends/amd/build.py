"""From HIP C++ to machine code: which compiler there is, how it is called, and the cache of what it made."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from warpwave.tiles.errors import InternalError, UnsupportedError

FLAGS = (
    "-x",
    "hip",
    "--cuda-device-only",
    "-nogpuinc",
    "-nogpulib",
    "-O3",
    "-std=c++20",
    "-ffp-contract=off",
    "-Wno-cuda-compat",
    "-gline-tables-only",
)
REMEDY = "pip install 'ziglang>=0.17'"


@dataclass(frozen=True)
class Compiler:
    """A clang with the AMDGPU target: how to call it, and its version."""

    command: tuple[str, ...]
    version: str


@lru_cache(maxsize=1)
def find_compiler() -> Compiler | None:
    """ROCm's clang if it is installed, else the clang of the `ziglang` package."""
    rocm = shutil.which("amdclang++") or shutil.which("clang++", path="/opt/rocm/llvm/bin")
    if rocm:
        return Compiler((rocm,), _version((rocm,)))
    if importlib.util.find_spec("ziglang") is not None:
        command = (sys.executable, "-m", "ziglang", "clang")
        return Compiler(command, _version(command))
    return None


def _version(command: tuple[str, ...]) -> str:
    result = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    return result.stdout.splitlines()[0].strip()


def compile_to_asm(source: str, target: str, defines: tuple[str, ...] = ()) -> str:
    """Assembly text of the kernel, from the cache if the same source was built by the same compiler."""
    compiler = find_compiler()
    if compiler is None:
        raise UnsupportedError(f"no compiler for {target}: neither ROCm's clang nor ziglang is installed", hint=REMEDY)
    key = hashlib.sha256("\0".join([source, target, compiler.version, *FLAGS, *defines]).encode()).hexdigest()
    cached = cache_directory() / f"{key}.s"
    if cached.exists():
        return cached.read_text()
    asm = _run(compiler, source, target, defines)
    cached.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=cached.parent, delete=False) as new:
        new.write(asm)
    os.replace(new.name, cached)  # whole or not at all, also with several processes
    return asm


def cache_directory() -> Path:
    """Where built code is kept: $WARPWAVE_CACHE, else the user's cache directory."""
    base = os.environ.get("WARPWAVE_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "warpwave"
    )
    return Path(base) / "amd"


def _run(compiler: Compiler, source: str, target: str, defines: tuple[str, ...]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "kernel.hip", Path(folder) / "kernel.s"
        path.write_text(source)
        command = [*compiler.command, *FLAGS, *defines, f"--offload-arch={target}", "-S", "-o", str(out), str(path)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            raise InternalError(f"the generated source does not compile for {target}:\n{result.stderr[:4000]}")
        return out.read_text()
