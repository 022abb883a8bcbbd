"""Compile a HIP kernel for MI355X, run it on the simulator, and let the simulator find a missing bound.

Needs `pip install warpwave[amd]` for the compiler. No GPU, no ROCm. All results are simulated.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from rich import print as show

from warpwave.backends.amd import sim

SOURCE = """
extern "C" __attribute__((global)) void vector_add(float* c, const float* a, const float* b, int n) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < n) c[i] = a[i] + b[i];
}
"""


def compile_hip(source: str, target: str) -> str:
    """Assembly of a HIP source, by the clang inside the ziglang wheel."""
    flags = ["-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-O3", "-g", "-S"]
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "kernel.hip", Path(folder) / "kernel.s"
        file.write_text(source)
        command = [sys.executable, "-m", "ziglang", "clang", *flags, f"--offload-arch={target}"]
        subprocess.run([*command, str(file), "-o", str(out)], check=True)
        return out.read_text()


def main() -> None:
    """Run the kernel right, then with a size that is one too large."""
    program = sim.load(compile_hip(SOURCE, "gfx950"))
    a, b = np.random.default_rng(0).standard_normal((2, 100)).astype(np.float32)
    c = np.empty(100, np.float32)

    report = program.launch("vector_add", grid=(2,), block=(64,), args=[c, a, b, np.int32(100)])
    assert np.array_equal(c, a + b)
    show(report.table())
    show(report.listing(executed_only=True))

    try:
        program.launch("vector_add", grid=(2,), block=(64,), args=[c, a, b, np.int32(101)])
    except sim.SimError as error:
        print(error)


if __name__ == "__main__":
    main()
