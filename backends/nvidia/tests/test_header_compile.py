"""The device headers compile alone on every architecture, and their operations become the instructions they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwave.backends.nvidia import nvcc, nvrtc, sass
from warpwave.backends.nvidia.build import INCLUDE
from warpwave.backends.nvidia.tests import device_kernels
from warpwave.backends.nvidia.tests.device_kernels import FLAGS

HEADERS = sorted(path.relative_to(INCLUDE).as_posix() for path in INCLUDE.rglob("*.cuh"))
needs_nvrtc = pytest.mark.skipif(not nvrtc.version(), reason="NVRTC is not installed")
needs_disassembler = pytest.mark.skipif(not sass.find_disassembler(), reason="nvdisasm is not installed")
needs_nvcc = pytest.mark.skipif(not nvcc.find(), reason="nvcc is not installed")


def compiled(source: str, arch: str) -> tuple[bytes, str]:
    cubin, _, log = nvrtc.compile_source(source, "test.cu", (*FLAGS, f"--gpu-architecture={arch}"))
    return cubin, log


def counts(cubin: bytes) -> dict[str, int]:
    instructions, _ = sass.parse(sass.disassemble(cubin))
    return sass.mix(instructions)


def mnemonics(cubin: bytes) -> set[str]:
    instructions, _ = sass.parse(sass.disassemble(cubin))
    return {i.mnemonic for i in instructions}


@needs_nvrtc
@pytest.mark.parametrize("arch", [pytest.param("sm_80", marks=pytest.mark.sweep), "sm_90a"])
@pytest.mark.parametrize("header", HEADERS)
def test_each_header_compiles_alone(header: str, arch: str) -> None:
    _, log = compiled(f"#include <{header}>\n", arch)
    assert not log, log


@needs_nvrtc
def test_all_headers_compile_for_older_chips() -> None:
    _, log = compiled("".join(f"#include <{header}>\n" for header in HEADERS), "sm_80")
    assert not log, log


@needs_nvrtc
def test_headers_name_no_file_of_a_host_toolkit() -> None:
    allowed = {"kittens.cuh"}
    for header in HEADERS:
        for line in (INCLUDE / header).read_text().splitlines():
            if line.startswith("#include <"):
                assert line.split("<")[1].rstrip(">") in allowed, f"{header}: {line}"


@needs_nvrtc
@needs_disassembler
@pytest.mark.parametrize(
    "name", ["functions", "registers", "transfers", pytest.param("products", marks=pytest.mark.sweep)]
)
def test_device_tests_compile_without_local_memory(name: str) -> None:
    """What the GPU tests run: every operation of the headers is used by one of them."""
    kernel = device_kernels.SOURCES[name]
    cubin, log = compiled(kernel.text(), kernel.arch)
    assert not log, log
    mix = counts(cubin)
    assert not {"LDL", "STL"} & set(mix), mix
    found = mnemonics(cubin)
    missing = [want for want in kernel.instructions if not any(m.startswith(want) for m in found)]
    assert not missing, f"{missing} not among {sorted(found)}"


@pytest.mark.sweep
@needs_nvrtc
@needs_disassembler
@pytest.mark.parametrize("arch", ["sm_80", "sm_89"])
def test_warp_operations_compile_for_older_chips(arch: str) -> None:
    cubin, log = compiled(device_kernels.SOURCES["registers"].text(), arch)
    assert not log, log
    assert {"LDSM", "HMMA", "MOVM", "IMMA"} <= {m.split(".")[0] for m in mnemonics(cubin)}


@pytest.mark.sweep
@needs_nvcc
@pytest.mark.parametrize("name", sorted(device_kernels.SOURCES))
def test_device_tests_compile_with_nvcc(name: str, tmp_path: Path) -> None:
    kernel = device_kernels.SOURCES[name]
    options = ("-std=c++20", f"-I{INCLUDE}", f"-I{device_kernels.DEVICE}", "-fmad=false", f"-arch={kernel.arch}")
    cubin, _, log = nvcc.compile_source(nvcc.find(), kernel.text(), "test.cu", options)
    assert not log, log
    assert cubin
