"""The CUDA sources of the header's tests on a device, and their cubins.

`python -m warpwave.backends.nvidia.tests.device_kernels FOLDER` compiles them all; a machine without a compiler finds
them there with WARPWAVE_DEVICE_CUBINS=FOLDER.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from warpwave.backends.nvidia.build import INCLUDE, find_compiler
from warpwave.backends.nvidia.tests.device_driver import Array, At, Gpu, Launch, capability

DEVICE = Path(__file__).parent / "device"
FLAGS = ("--std=c++20", "--fmad=false", f"-I{INCLUDE}", f"-I{DEVICE}")


@dataclass(frozen=True)
class Source:
    """A file of device tests: the architecture that it needs, and instructions that its code must contain."""

    file: str
    arch: str
    instructions: tuple[str, ...]

    def text(self) -> str:
        return (DEVICE / self.file).read_text()

    def kernels(self) -> list[str]:
        """The names of kernels written out with TEST."""
        return re.findall(r"^TEST\((\w+),", self.text(), re.MULTILINE)

    def cases(self, kernel: str) -> list[str]:
        """The names of a kernel's cases, in the order of their planes."""
        body = self.text().split(f"TEST({kernel},", 1)[1].split("\nTEST(", 1)[0].split("\n}\n", 1)[0]
        return _expanded(self.text(), re.sub(r"#define (?:.*\\\n)*.*", "", body))

    def cubin(self) -> bytes:
        """Compiled, or as found in WARPWAVE_DEVICE_CUBINS."""
        folder = os.environ.get("WARPWAVE_DEVICE_CUBINS")
        path = Path(folder) / self._cubin_name() if folder else None
        if path and path.exists():
            return path.read_bytes()
        compiler = find_compiler()
        if compiler is None:
            raise RuntimeError("no CUDA compiler, and no cubin of this source in WARPWAVE_DEVICE_CUBINS")
        return compiler.run(self.text(), self.file, (*FLAGS, f"--gpu-architecture={self.arch}"))[0]

    def _cubin_name(self) -> str:
        texts = [self.text(), *(path.read_text() for path in sorted(DEVICE.glob("*.cuh")))]
        texts += [path.read_text() for path in sorted(INCLUDE.rglob("*.cuh"))]
        return f"{self.file}.{hashlib.sha256(''.join(texts).encode()).hexdigest()[:16]}.cubin"

    def save(self, folder: Path) -> Path:
        """Compile into a folder."""
        path = folder / self._cubin_name()
        path.write_bytes(self.cubin())
        return path


def _expanded(text: str, body: str) -> list[str]:
    """CASE names in a body; those that a macro of one line or more makes are spelt out."""
    macros = {
        name: (parameters.replace(" ", "").split(","), definition)
        for name, parameters, definition in re.findall(r"#define (\w+)\(([^)]*)\)((?:.*\\\n)*.*)", text)
        if "CASE(" in definition
    }
    names = []
    for name, arguments in re.findall(r"\b(\w+)\(([^()]*)", body):
        if name == "CASE":
            names.append(arguments)
        elif name in macros:
            parameters, definition = macros[name]
            bound = dict(zip(parameters, re.split(r",\s*", arguments), strict=True))
            for pattern in re.findall(r"CASE\(([\w#]+)\)", definition):
                names.append("".join(bound.get(part, part) for part in pattern.split("##")))
    return names


SOURCES = {
    "registers": Source(
        "registers.cu", "sm_90a", ("LDSM.16.M88.4", "LDSM.16.MT88.4", "STSM.16.M88.4", "STSM.16.MT88.4", "MOVM.16.MT88",
                                   "HMMA.16816.F32.BF16", "HMMA.16816.F16", "HMMA.1688.F32.TF32", "IMMA.16832.S8.S8",
                                   "MUFU.EX2", "MUFU.LG2", "LDGSTS", "F2FP.SATFINITE.E4M3", "F2FP.SATFINITE.E5M2")
    ),
    "products": Source(
        "products.cu", "sm_90a", ("HGMMA.64x128x16.F32.BF16", "HGMMA.64x96x16.F32", "HGMMA.64x64x8.F32.TF32",
                                  "IGMMA.64x64x32.S8.S8", "QGMMA.64x64x32.F32.E4M3.E5M2", "QGMMA.64x192x32.F32.E5M2.E5M2",
                                  *(f"HGMMA.64x{n}x16.F32.BF16" for n in range(8, 257, 8)), "WARPGROUP.ARRIVE")
    ),
    "transfers": Source(
        "transfers.cu", "sm_90a", ("UTMALDG.2D", "UTMALDG.5D", "UTMALDG.2D.MULTICAST", "UTMASTG.2D", "UTMAREDG.2D.ADD",
                                   "UBLKCP", "UTMACCTL", "SYNCS", "USETMAXREG", "UCGABAR")
    ),
    "functions": Source(
        "functions.cu", "sm_90a", ("MUFU.EX2", "MUFU.RSQ", "MUFU.RCP", "FMNMX.NAN", "LDG.E.128", "F2FP.SATFINITE.E4M3")
    ),
}  # fmt: skip


GPU = Gpu()
needs_device = pytest.mark.skipif((capability() or (0,))[0] != 9, reason="needs a device of compute capability 9.0")


@lru_cache(maxsize=len(SOURCES))
def _cubin(source: str) -> bytes:
    return SOURCES[source].cubin()


def run_kernel(
    source: str, kernel: str, arrays: Sequence[Array], *parameters: Any, threads: int, grid: int = 1
) -> list[Array]:
    """The arrays after the kernel, whose parameters are addresses of all arrays unless given."""
    values = parameters or tuple(At(i) for i in range(len(arrays)))
    return GPU.run(Launch(_cubin(source), kernel, grid, threads, 160 * 1024, values), arrays)


def main(folder: Path) -> None:
    """Compile every source."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in SOURCES.values():
        print(source.save(folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
