"""The habits that keep the code small and the language neutral, measured (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("tiles", "backends", "kernels", "conformance", "bench")
MAX_FILE, MAX_FUNCTION, MAX_MEDIAN = 800, 60, 8
VENDOR_WORDS = re.compile(
    r"\b(amd\w*|nvidia\w*|gfx\w*|sm_?\d+\w*|cuda\w*|hip|hiprtc|rocm\w*|cdna\d*|rdna\d*|hopper|ampere|blackwell|ptx)\b",
    re.IGNORECASE,
)


def sources(*folders: str, suffixes: tuple[str, ...] = (".py",)) -> list[Path]:
    """Files of the project, without what is built."""
    found = [p for f in folders for s in suffixes for p in (ROOT / f).rglob(f"*{s}")]
    return sorted(p for p in found if not {"build", "__pycache__"} & set(p.parts))


def is_test(path: Path) -> bool:
    return "tests" in path.relative_to(ROOT).parts


def function_lengths(path: Path) -> list[tuple[int, str]]:
    """Lines and name of every function of a file."""
    tree = ast.parse(path.read_text())
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [
        ((n.end_lineno or n.lineno) - n.lineno + 1, f"{path.relative_to(ROOT)}:{n.lineno} {n.name}") for n in functions
    ]


def test_no_file_is_too_long():
    long = []
    for path in sources(*FOLDERS, "tests", suffixes=(".py", ".cpp", ".hpp")):
        lines = len(path.read_text().splitlines())
        if lines > MAX_FILE:
            long.append(f"{path.relative_to(ROOT)}: {lines}")
    assert not long


def test_functions_are_short():
    lengths = [f for p in sources(*FOLDERS) if not is_test(p) for f in function_lengths(p)]
    assert not [f for f in lengths if f[0] > MAX_FUNCTION]
    assert median(n for n, _ in lengths) <= MAX_MEDIAN


def test_long_functions_would_be_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    file = tmp_path / "a.py"
    file.write_text("def f():\n" + "    x = 1\n" * 70)
    assert function_lengths(file) == [(71, "a.py:1 f")]


@pytest.mark.parametrize("folder", ["tiles", "kernels"])
def test_the_language_names_no_vendor(folder):
    found = []
    for path in (p for p in sources(folder) if not is_test(p)):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if VENDOR_WORDS.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("for AMD GPUs", True),
        ("gfx942", True),
        ("sm_90a", True),
        ("a cuda device", True),
        ("relationship, chip", False),
    ],
)
def test_vendor_words(text, found):
    assert bool(VENDOR_WORDS.search(text)) == found


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_module_says_what_it_is(folder):
    for path in sources(folder):
        if is_test(path):
            continue
        docstring = ast.get_docstring(ast.parse(path.read_text()))
        assert docstring, f"{path.relative_to(ROOT)} has no docstring"


def test_nothing_is_left_to_do():
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    files = sources(*FOLDERS, "tests", suffixes=(".py", ".cpp", ".hpp"))
    found = [str(p.relative_to(ROOT)) for p in files if p != Path(__file__) and marks.search(p.read_text())]
    assert not found


def test_the_facade_links_to_every_folder():
    for folder in FOLDERS:
        assert (ROOT / "src" / "warpwave" / folder).resolve() == (ROOT / folder).resolve()
