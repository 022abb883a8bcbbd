"""The comparison of machine code with both headers; on upstream's only with THUNDERKITTENS_ROOT set."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warpwave.backends.nvidia import nvcc, sass
from warpwave.bench.h200 import headers

CHECKOUT = os.environ.get("THUNDERKITTENS_ROOT", "")


def test_a_difference_is_told():
    same = headers.Comparison("k", ("HGMMA R0", "EXIT"), ("HGMMA R0", "EXIT"))
    other = headers.Comparison("k", ("HGMMA R0", "EXIT"), ("EXIT",))
    assert str(same) == "| k | 2 | 1 | the same |"
    assert str(other) == "| k | 2 | 1 | differs: 1 instructions |"


@pytest.mark.sweep
@pytest.mark.skipif(not (CHECKOUT and nvcc.find() and sass.find_disassembler()), reason="needs THUNDERKITTENS_ROOT")
def test_library_kernels_have_the_same_code_with_upstream_headers():
    assert [c.kernel for c in headers.compare(Path(CHECKOUT)) if not c.same] == []
