"""The simulator's sources are clean C++20 to Clang as well, with the warnings of CMakeLists.txt.

The library itself is built by the compiler of the install, which mostly is GCC; here the clang of the ziglang wheel
compiles each file by itself.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]
FLAGS = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-pass-failed", "-ffp-contract=off"]
PARTS = ("core", "insns", "arith", "timing")
SOURCES = sorted(p for part in PARTS for p in (FOLDER / part).glob("*.cpp") if not p.name.startswith("bind"))
QUICK = {"valu.cpp", "half_rows.cpp"}  # multiversioned functions and intrinsics: where compilers differ


def sources() -> list:
    return [
        pytest.param(p, id=f"{p.parent.name}/{p.name}", marks=() if p.name in QUICK else pytest.mark.sweep)
        for p in SOURCES
    ]


@pytest.mark.parametrize("source", sources())
def test_clang_compiles_without_a_warning(source: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ziglang", "c++", *FLAGS, "-c", str(source), "-o", str(tmp_path / "out.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
