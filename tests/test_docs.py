"""The documentation says what is true: generated tables are fresh, examples run, links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import warpwave as ww
from warpwave.conformance.contract import allowed
from warpwave.tiles.op_tables import page
from warpwave.tiles.tests.reference_harness import assert_softmax, assert_within

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("tests/*/README.md")]


def test_the_table_of_ops_is_fresh():
    assert (ROOT / "docs/ops.md").read_text() == page(), "run: python -m warpwave.tiles.op_tables > docs/ops.md"


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_relative_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def python_block(path: Path, start: str) -> str:
    """The first Python block that contains `start`."""
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)
    return next(b for b in blocks if start in b)


def load(tmp_path, monkeypatch, text: str) -> dict:
    """Execute a block as a file, since kernels are read from their source."""
    file = tmp_path / "example.py"
    file.write_text(text)
    namespace = {"__name__": "example"}
    exec(compile(text, file, "exec"), namespace)
    return namespace


def assert_agrees(kernel, arguments: list, output: str, exact: np.ndarray, **constants) -> None:
    """An output is what the page promises, within the contract's bounds."""
    ir = kernel.compile(*arguments, **constants, target="reference").ir
    given = dict(zip(ir.param_names, arguments, strict=True))
    assert_within(given[output], exact, allowed(ir, given)[output].bound)


def test_the_readme_example_runs(tmp_path, monkeypatch, capsys):
    names = load(tmp_path, monkeypatch, python_block(ROOT / "README.md", "def gemm"))
    want = names["a"].astype(np.float64) @ names["b"].astype(np.float64).T
    assert_agrees(names["gemm"], [names["a"], names["b"], names["c"]], "c", want)
    assert capsys.readouterr().out.startswith("kernel @gemm(")


def test_the_language_example_runs(tmp_path, monkeypatch):
    names = load(tmp_path, monkeypatch, python_block(ROOT / "docs/language.md", "def softmax"))
    x = np.random.default_rng(0).standard_normal((70, 200)).astype(np.float32)
    y = np.full_like(x, np.nan)
    names["softmax"](x, y, W=256)
    assert_softmax(y, x)


def test_the_tuning_example_runs(tmp_path, monkeypatch, capsys):
    load(tmp_path, monkeypatch, python_block(ROOT / "docs/language.md", "ww.autotune"))
    printed = capsys.readouterr().out
    assert printed.startswith("modelled on MI355X\n")
    assert all(f" {name}" in printed for name in ("BM=128, BN=128: ", "BM=32, BN=64: ", "BM=32, BN=64, stages=2: "))


def test_the_ported_product_runs(tmp_path, monkeypatch):
    names = load(tmp_path, monkeypatch, python_block(ROOT / "docs/porting.md", "def product"))
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((150, 70)).astype(np.float16), rng.standard_normal((40, 70)).astype(np.float16)
    c = np.full((150, 40), np.nan, np.float32)
    names["product"](a, b, c)
    assert_agrees(names["product"], [a, b, c], "c", a.astype(np.float64) @ b.astype(np.float64).T)


def test_every_op_that_porting_names_exists():
    text = (ROOT / "docs/porting.md").read_text()
    assert not [name for name in set(re.findall(r"\bww\.(\w+)", text)) if not hasattr(ww, name)]
