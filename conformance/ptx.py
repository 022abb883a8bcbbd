"""One PTX instruction on given bits, run by an NVIDIA GPU: `python -m warpwave.conformance.ptx` confirms the ledger."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.backends.nvidia import nvrtc
from warpwave.backends.nvidia.runtime import devices, driver
from warpwave.backends.nvidia.runtime.memory import allocated
from warpwave.conformance.ledger import Outcome, confirm
from warpwave.conformance.probes import NVIDIA, PROBES, Bits, InstructionProbe

THREADS = 64
# What the instruction writes: the register's type and how it becomes 32 bits.
_SHORT = re.compile(r"cvt\.rn(\.satfinite)?\.(e4m3x2|e5m2x2|f16)\.")
_KERNEL = """\
extern "C" __global__ void probe(const unsigned *given, unsigned *result, int count) {{
  const int i = threadIdx.x;
  if (i >= count) return;
  unsigned d;
  const unsigned a = given[3 * i], b = given[3 * i + 1], c = given[3 * i + 2];
  asm volatile("{text}" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  result[i] = d;
}}
"""


def source(instruction: str) -> str:
    """CUDA C++ of a kernel that runs the instruction; `{d}`, `{a}`, `{b}`, `{c}` are its registers."""
    registers = {"a": "%1", "b": "%2", "c": "%3"}
    if _SHORT.match(instruction):
        body = instruction.format(d="half", **registers)
        return _KERNEL.format(text=f"{{ .reg .b16 half; {body} mov.b32 %0, {{half, 0}}; }}")
    return _KERNEL.format(text=instruction.format(d="%0", **registers))


def compiled(instruction: str, arch: str) -> bytes:
    """The cubin; CompileFailed if the architecture lacks the instruction."""
    return nvrtc.compile_source(source(instruction), "probe.cu", (f"--gpu-architecture={arch}",))[0]


def run_instruction(instruction: str, operands: list[list[int]], device: devices.Device) -> Bits:
    """The result bits for each tuple of operand bits."""
    given = np.zeros((THREADS, 3), np.uint32)
    for row, values in enumerate(operands):
        given[row, : len(values)] = values
    result = np.zeros(THREADS, np.uint32)
    assert device.target is not None
    cubin = compiled(instruction, device.target.arch)
    with devices.current(device), allocated(given.nbytes) as source_, allocated(result.nbytes) as to:
        module = driver.call("cuModuleLoadData", cubin)
        function = driver.call("cuModuleGetFunction", module, b"probe")
        driver.call("cuMemcpyHtoD", source_, given.ctypes.data, given.nbytes)
        _launch(function, source_, to, len(operands))
        driver.call("cuMemcpyDtoH", result.ctypes.data, to, result.nbytes)
        driver.call("cuModuleUnload", module)
    return tuple(int(x) for x in result[: len(operands)])


def _launch(function: object, given: int, result: int, count: int) -> None:
    values: list[npt.NDArray[Any]] = [
        np.array([given], np.uint64),
        np.array([result], np.uint64),
        np.array([count], np.int32),
    ]
    pointers = np.array([v.ctypes.data for v in values], np.uint64)
    driver.call("cuLaunchKernel", function, 1, 1, 1, THREADS, 1, 1, 0, 0, pointers.ctypes.data, 0)


def confirm_all(device: devices.Device) -> list[Outcome]:
    """Every instruction of the ledger that the device's target has, against what the ledger says."""
    assert device.target is not None
    side = device.target.full_name
    probes = [p for p in PROBES.values() if isinstance(p, InstructionProbe) and side in p.texts]
    return [
        confirm(p.name, side, run_instruction(p.texts[side], [list(o) for o in p.operands], device)) for p in probes
    ]


def main() -> int:
    """Print one line for each instruction; 1 if some bits are not as the ledger says, 2 without a device."""
    found = [d for d in devices.devices() if d.target is not None and d.target.full_name in NVIDIA]
    if not found:
        print("no NVIDIA GPU of a known target", file=sys.stderr)
        return 2
    outcomes = confirm_all(found[0])
    for outcome in outcomes:
        print(outcome)
    return int(not all(o.holds for o in outcomes))


if __name__ == "__main__":
    sys.exit(main())
