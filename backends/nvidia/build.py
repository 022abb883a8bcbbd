"""From CUDA C++ to a cubin: which compiler there is, how it is called, and the cache of what it made.

Building needs no GPU, no driver and no CUDA toolkit: NVRTC comes as a Python package.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from warpwave.backends.nvidia import nvcc, nvrtc
from warpwave.backends.nvidia.arch import Target
from warpwave.backends.nvidia.cubin import figures
from warpwave.backends.nvidia.lowered import AFTER_COPIES, Lowered
from warpwave.backends.nvidia.nvcc import CompileFailed
from warpwave.tiles import disk_cache
from warpwave.tiles.errors import InternalError, ResourceError, UnsupportedError

# No contraction: the language rounds a * b and + c separately, and the generated code asks for fma where it wants it.
# Denormals, division and square root keep the compilers' defaults, which are IEEE's.
# Warning 177: generated code names things that a variant does not use.
FLAGS = ("--std=c++20", "--fmad=false", "--generate-line-info", "--ptxas-options=-v", "--diag-suppress=177")
REMEDY = "pip install nvidia-cuda-nvrtc cuda-bindings"
INCLUDE = Path(__file__).parent / "include"
CONTEXT = 2  # lines of source shown around an error


@dataclass(frozen=True)
class Built:
    """What the compiler made: the machine code, the PTX it came from, and what the assembler said."""

    cubin: bytes
    ptx: str
    log: str


@dataclass(frozen=True)
class Compiler:
    """A compiler for CUDA C++: its name and version, and the path of nvcc if it is that."""

    version: str
    nvcc: str = ""

    def run(self, source: str, name: str, options: tuple[str, ...]) -> tuple[bytes, str, str]:
        """Cubin, PTX and log; CompileFailed with the compiler's messages."""
        if self.nvcc:
            return nvcc.compile_source(self.nvcc, source, name, options)
        return nvrtc.compile_source(source, name, options)


@lru_cache(maxsize=1)
def find_compiler() -> Compiler | None:
    """NVRTC if its Python packages are installed, else nvcc."""
    version = nvrtc.version()
    if version:
        return Compiler(version)
    path = nvcc.find()
    return Compiler(nvcc.version(path), path) if path else None


def build(lowered: Lowered, target: Target, wide: int, tma: int) -> Built:
    """A variant of a kernel, from the cache if the same source was built by the same compiler."""
    compiler = find_compiler()
    if compiler is None:
        raise UnsupportedError(
            f"no compiler for {target.full_name}: neither NVRTC (packages nvidia-cuda-nvrtc and cuda-bindings) nor "
            "nvcc is installed",
            hint=REMEDY,
        )
    macros = [f"-DWIDE={wide & 0xFFFFFFFF}u", f"-DROWS={wide >> 32}u", f"-DTMA={tma & 0xFFFFFFFF}u"]
    macros += ["-DAFTER_COPIES=1"] if tma & AFTER_COPIES else []
    options = (*FLAGS, f"--gpu-architecture={target.arch}", *macros)
    folder = cache_directory() / _key(lowered, compiler, options)
    if not (folder / "kernel.cubin").exists():
        _save(folder, _compile(compiler, lowered, target, options))
    texts = ((folder / f"kernel.{kind}").read_text() for kind in ("ptx", "log"))
    return Built((folder / "kernel.cubin").read_bytes(), *texts)


def cache_directory() -> Path:
    """Where built code is kept."""
    return disk_cache.folder("nvidia")


def _key(lowered: Lowered, compiler: Compiler, options: tuple[str, ...]) -> str:
    """Covers all that the machine code depends on."""
    digest = hashlib.sha256()
    for text in (lowered.entry, lowered.built_source, compiler.version, *options):
        digest.update(text.encode() + b"\0")
    for path in sorted(p for p in INCLUDE.rglob("*") if p.is_file()):
        digest.update(str(path.relative_to(INCLUDE)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _save(folder: Path, built: Built) -> None:
    """The folder appears whole or not at all, also with several processes."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        new = Path(temporary) / "new"
        new.mkdir()
        (new / "kernel.cubin").write_bytes(built.cubin)
        (new / "kernel.ptx").write_text(built.ptx)
        (new / "kernel.log").write_text(built.log)
        try:
            os.replace(new, folder)
        except OSError:  # another process was first, with the same code
            if not (folder / "kernel.cubin").exists():
                shutil.rmtree(folder, ignore_errors=True)
                os.replace(new, folder)


def _compile(compiler: Compiler, lowered: Lowered, target: Target, options: tuple[str, ...]) -> Built:
    """With registers for as many blocks as the source asks for; if some would spill, without."""
    built = _compile_once(compiler, lowered, target, options)
    if "RESIDENT" not in lowered.built_source or not figures(built.cubin, lowered.entry, 0).local_bytes:
        return built  # the machine code says so, since the log may be empty
    return _compile_once(compiler, lowered, target, (*options, "-DRESIDENT=1"))


def _compile_once(compiler: Compiler, lowered: Lowered, target: Target, options: tuple[str, ...]) -> Built:
    options = (*options, f"--include-path={INCLUDE}")
    name = f"{lowered.entry}.cu"
    try:
        return Built(*compiler.run(lowered.built_source, name, options))
    except CompileFailed as failure:
        _raise_if_too_large(lowered, target, str(failure))
        raise InternalError(
            f"the generated source does not compile for {target.full_name} ({compiler.version}):\n"
            + _messages(compiler, lowered, name, options, str(failure))
        ) from None


def _raise_if_too_large(lowered: Lowered, target: Target, log: str) -> None:
    """ResourceError if the assembler gave up for want of registers, which asynchronous products cannot spill."""
    match = re.search(r"Insufficient registers \((\d+)\).*register target of (\d+)", log)
    if match:
        raise ResourceError(
            f"{lowered.entry} needs {match[2]} registers a thread, its {lowered.threads} threads leave {match[1]} on "
            f"{target.full_name}",
            hint="use smaller tiles, or fewer warps",
        ) from None


def _messages(compiler: Compiler, lowered: Lowered, name: str, options: tuple[str, ...], log: str) -> str:
    """The errors, with the generated lines that they are about; #line would name the user's lines instead."""
    try:
        compiler.run(lowered.source, name, options)
    except CompileFailed as failure:
        return with_source(str(failure), lowered.source, name)[:6000]
    return log[:6000]


def with_source(log: str, source: str, name: str) -> str:
    """A compiler's messages, each error followed by the lines of `name` around it."""
    lines = source.splitlines()
    shown: list[str] = []
    for message in log.strip().splitlines():
        shown.append(message)
        match = re.search(rf"{re.escape(name)}\((\d+)\): (?:catastrophic )?error", message)
        if match:
            at = int(match[1])
            first = max(at - CONTEXT, 1)
            shown += [
                f"  {'>' if number == at else ' '} {number:4} | {text}"
                for number, text in enumerate(lines[first - 1 : at + CONTEXT], first)
            ]
    return "\n".join(shown)
