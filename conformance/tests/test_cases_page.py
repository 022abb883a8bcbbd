"""docs/cases.md names tests that exist, and every numbered test is on it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from warpwave.conformance.probes import PROBES

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/cases.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))
FILES = ("tiles/tests/test_cases.py", "conformance/tests/test_cases.py")


def functions_of(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")}


@pytest.mark.parametrize("path", sorted({path for path, _ in NAMED}))
def test_named_tests_exist(path):
    assert {name for p, name in NAMED if p == path} <= functions_of(path)


def test_named_probes_exist():
    probes = set(re.findall(r"`ledger\[([\w-]+)\]`", PAGE))
    assert len(probes) > 15
    assert probes <= set(PROBES)


@pytest.mark.parametrize("path", FILES)
def test_every_numbered_test_has_its_row(path):
    numbers = {
        int(n) for name in functions_of(path) for n in re.findall(r"_(\d\d)(?=_)", name.split("_case_")[-1][:12])
    }
    rows = {int(n) for cell in re.findall(r"^\| ([\d, ]+) \|", PAGE, re.MULTILINE) for n in cell.split(",")}
    assert not numbers - rows
