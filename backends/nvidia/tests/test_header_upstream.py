"""The same source compiles with our kittens.cuh and with that of ThunderKittens, to the same matrix instructions.

Upstream's part runs with THUNDERKITTENS_ROOT set to a checkout of ThunderKittens 2.0 and nvcc installed.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from warpwave.backends.nvidia import nvcc, nvrtc, sass
from warpwave.backends.nvidia.build import INCLUDE
from warpwave.backends.nvidia.tests.device_kernels import DEVICE, FLAGS

SOURCE = (DEVICE / "upstream_sample.cu").read_text()
UPSTREAM = os.environ.get("THUNDERKITTENS_ROOT", "")
COMMON = ("HGMMA", "STSM", "LDSM", "UTMALDG", "MUFU")


def instructions(cubin: bytes) -> Counter[str]:
    found, _ = sass.parse(sass.disassemble(cubin))
    return Counter(i.mnemonic for i in found if i.kind in COMMON)


@pytest.mark.skipif(not nvrtc.version(), reason="NVRTC is not installed")
def test_the_sample_compiles_with_our_header() -> None:
    options = (*FLAGS, "--gpu-architecture=sm_90a")
    cubin, _, log = nvrtc.compile_source(SOURCE, "sample.cu", options)
    assert not log, log
    if sass.find_disassembler():
        assert {"HGMMA.64x128x16.F32.BF16", "STSM.16.M88.4", "UTMALDG.5D"} <= set(instructions(cubin))


@pytest.mark.skipif(not (UPSTREAM and nvcc.find()), reason="needs THUNDERKITTENS_ROOT and nvcc")
def test_the_sample_compiles_with_upstream() -> None:
    common = ("-std=c++20", "-fmad=false", "-gencode", "arch=compute_90a,code=sm_90a")
    ours = nvcc.compile_source(nvcc.find(), SOURCE, "sample.cu", (*common, f"-I{INCLUDE}"))[0]
    flags = ("--expt-relaxed-constexpr", "--expt-extended-lambda", "-DKITTENS_HOPPER")
    theirs = nvcc.compile_source(
        nvcc.find(), SOURCE, "sample.cu", (*common, *flags, f"-I{UPSTREAM}/include", f"-I{INCLUDE}")
    )[0]
    wanted = {kind: count for kind, count in instructions(ours).items() if kind.startswith(("HGMMA", "UTMA", "STSM"))}
    assert wanted
    assert {kind: instructions(theirs)[kind] for kind in wanted} == wanted
