"""From HIP C++ to machine code: which compiler there is, how it is called, and the cache of what it made."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path

from warpwave.backends.amd import spacing
from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.landing import check_landing
from warpwave.tiles import disk_cache
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
    "-ffile-compilation-dir=.",  # the folder of a build is a temporary one
)
REMEDY = "pip install 'ziglang>=0.17'"


@dataclass(frozen=True)
class Compiler:
    """A clang with the AMDGPU target: how to call it and its linker, and the file that is the program."""

    command: tuple[str, ...]
    linker: tuple[str, ...]
    program: Path

    @cached_property
    def identity(self) -> str:
        """Differs between compilers and between releases; asking for the version would start a process."""
        stat = self.program.stat()
        return f"{self.program.resolve()} {stat.st_size} {stat.st_mtime_ns}"

    @cached_property
    def version(self) -> str:
        """What it says of itself."""
        result = subprocess.run([*self.command, "--version"], capture_output=True, text=True, check=True)
        return result.stdout.splitlines()[0].strip()


@lru_cache(maxsize=1)
def find_compiler() -> Compiler | None:
    """ROCm's clang if it is installed, else the clang of the `ziglang` package."""
    rocm = shutil.which("amdclang++") or shutil.which("clang++", path="/opt/rocm/llvm/bin")
    if rocm:
        linker = Path(rocm).resolve().with_name("ld.lld")
        return Compiler((rocm,), (str(linker),), Path(rocm))
    spec = importlib.util.find_spec("ziglang")
    if spec is not None and spec.origin is not None:
        zig = Path(spec.origin).with_name("zig")
        if zig.exists():
            return Compiler((str(zig), "clang"), (str(zig), "ld.lld"), zig)
        python = (sys.executable, "-m", "ziglang")  # a packaging that keeps the program elsewhere
        return Compiler((*python, "clang"), (*python, "ld.lld"), Path(spec.origin))
    return None


def _compiler_for(target: str) -> Compiler:
    compiler = find_compiler()
    if compiler is None:
        raise UnsupportedError(f"no compiler for {target}: neither ROCm's clang nor ziglang is installed", hint=REMEDY)
    return compiler


def compile_to_asm(source: str, target: str, defines: tuple[str, ...] = ()) -> str:
    """Assembly text of the kernel, from the cache if the same source was built by the same compiler."""
    compiler = _compiler_for(target)
    arguments = [*FLAGS, *defines, f"--offload-arch={target}", "-S"]

    def build(folder: Path) -> bytes:
        (folder / "kernel.hip").write_text(source)
        _run([*compiler.command, *arguments, "-o", "kernel.s", "kernel.hip"], folder, f"compile for {target}")
        asm = (folder / "kernel.s").read_text()
        check_landing(asm)
        return spacing.spaced(asm, TARGETS[target]).encode()

    return _cached([source, compiler.identity, *arguments, *_finish(target)], ".s", build).decode()


@cache
def _finish(target: str) -> tuple[str, str]:
    """What is done to the compiler's assembly: the cache tells it from one that other rules finished."""
    return disk_cache.digest_of([Path(spacing.__file__)]), repr(TARGETS[target].hazards)


def code_object(asm: str, target: str) -> bytes:
    """The assembly as a code object that HIP loads, from the cache if it was assembled before."""
    compiler = _compiler_for(target)
    arguments = ["-x", "assembler", "--target=amdgcn-amd-amdhsa", f"-mcpu={target}", "-c"]

    def build(folder: Path) -> bytes:
        (folder / "kernel.s").write_text(asm)
        _run([*compiler.command, *arguments, "-o", "kernel.o", "kernel.s"], folder, f"assemble for {target}")
        _run([*compiler.linker, "-shared", "-o", "kernel.hsaco", "kernel.o"], folder, f"link for {target}")
        return (folder / "kernel.hsaco").read_bytes()

    return _cached([asm, compiler.identity, *arguments], ".hsaco", build)


def cache_file(parts: Sequence[str], suffix: str) -> Path:
    """Where the cache keeps what these texts determine."""
    return disk_cache.place("amd", parts, suffix)


def _cached(parts: Sequence[str], suffix: str, build: Callable[[Path], bytes]) -> bytes:
    path = cache_file(parts, suffix)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        pass
    with tempfile.TemporaryDirectory() as folder:
        data = build(Path(folder))
    disk_cache.write_whole(path, data)
    return data


def _run(command: Sequence[str], folder: Path, what: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if result.returncode != 0:
        raise InternalError(f"the generated source does not {what}:\n{result.stderr[:4000]}")
