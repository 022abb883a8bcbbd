"""nvcc, the CUDA toolkit's compiler driver: what builds kernels where NVRTC is not installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path


class CompileFailed(Exception):
    """A compiler refused a source; its messages."""


def find() -> str:
    """The path of nvcc: on the PATH, else in $CUDA_HOME, $CUDA_PATH or /usr/local/cuda; empty if nowhere."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    folders = os.pathsep.join(os.path.join(home, "bin") for home in homes if home)
    return shutil.which("nvcc") or shutil.which("nvcc", path=folders) or ""


def version(path: str) -> str:
    """The lines of `nvcc --version` that tell compilers apart."""
    result = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    lines = [line.strip() for line in result.stdout.splitlines() if "release" in line or "Build" in line]
    return "nvcc " + " ".join(lines)


def compile_source(path: str, source: str, name: str, options: tuple[str, ...]) -> tuple[bytes, str, str]:
    """Cubin, PTX and log; CompileFailed with the compiler's messages."""
    with tempfile.TemporaryDirectory() as folder:
        kernel, cubin = Path(folder) / name, Path(folder) / "kernel.cubin"
        kernel.write_text(source)
        # --keep leaves the PTX beside the cubin, without a second compilation.
        command = [path, "--cubin", "--keep", f"--keep-dir={folder}", *options, "-o", str(cubin), str(kernel)]
        result = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        log = (result.stdout + result.stderr).replace(f"{folder}/", "").strip()
        if result.returncode != 0 or not cubin.exists():
            raise CompileFailed(log or f"nvcc ended with {result.returncode}")
        ptx = kernel.with_suffix(".ptx")
        return cubin.read_bytes(), ptx.read_text() if ptx.exists() else "", log
