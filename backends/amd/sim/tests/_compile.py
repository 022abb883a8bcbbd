"""Compile HIP text or assemble AMD assembly with the clang inside the ziglang wheel, cached on disk."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).parent
TARGETS = ("gfx942", "gfx950")
CACHE = Path(tempfile.gettempdir()) / f"warpwave-sim-tests-{os.getuid()}"
HIP_FLAGS = ["-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-O3", "-std=c++20", "-w", "-S"]
ASM_FLAGS = ["-x", "assembler", "--target=amdgcn-amd-amdhsa", "-c"]


class CompileError(Exception):
    """The compiler or assembler refused its input; the message is its output."""


def _zig(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "ziglang", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileError(done.stderr)


@lru_cache(maxsize=1)
def _compiler_version() -> str:
    from importlib.metadata import version

    return version("ziglang")


def _cached(key: str, suffix: str, make) -> Path:
    """Run make(path) unless a file for this key is there; rename last, so that parallel runs agree."""
    digest = hashlib.sha256((_compiler_version() + key).encode()).hexdigest()[:24]
    path = CACHE / (digest + suffix)
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            fresh = Path(folder) / ("out" + suffix)
            make(fresh)
            fresh.rename(path)
    return path


def hip(source: Path, target: str, *flags: str) -> str:
    """Assembly text of a HIP source; includes are looked up beside it and in corpus/."""
    text = "".join(p.read_text() for p in (source, HERE / "corpus" / "common.h"))
    command = ["clang", *HIP_FLAGS, f"--offload-arch={target}", "-I", str(HERE / "corpus"), *flags]
    path = _cached(repr((text, target, flags)), ".s", lambda out: _zig(*command, str(source), "-o", str(out)))
    return path.read_text()


def assemble(text: str, target: str, code_object: int = 6) -> Path:
    """A linked code object of an assembly text."""

    def make(out: Path) -> None:
        source, unlinked = out.with_suffix(".s"), out.with_suffix(".o")
        source.write_text(text)
        version = f"-mcode-object-version={code_object}"
        _zig("clang", *ASM_FLAGS, f"-mcpu={target}", version, str(source), "-o", str(unlinked))
        _zig("ld.lld", "-shared", str(unlinked), "-o", str(out))

    return _cached(repr((text, target, code_object)), ".hsaco", make)


def kernel_names(text: str) -> list[str]:
    """Names of the kernels of an assembly text, in order."""
    return re.findall(r"^\s*\.amdhsa_kernel\s+(\S+)", text, re.M)


def kernel_name(text: str, part: str) -> str:
    """The one kernel whose (mangled) name holds `part` as a whole identifier."""
    names = [n for n in kernel_names(text) if n == part or re.match(rf"_Z{len(part)}{part}", n)]
    if len(names) != 1:
        raise ValueError(f"{part!r} matches {names} of {kernel_names(text)}")
    return names[0]
