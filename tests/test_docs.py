"""The documentation says what is true: generated tables are fresh, examples run, links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from warpwave.tiles.op_tables import page

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


def test_the_readme_example_runs(tmp_path, monkeypatch, capsys):
    names = load(tmp_path, monkeypatch, python_block(ROOT / "README.md", "def gemm"))
    want = names["a"].astype(np.float64) @ names["b"].astype(np.float64).T
    np.testing.assert_allclose(names["c"], want, rtol=1e-3, atol=1e-2)
    assert capsys.readouterr().out.startswith("kernel @gemm(")


def test_the_language_example_runs(tmp_path, monkeypatch):
    names = load(tmp_path, monkeypatch, python_block(ROOT / "docs/language.md", "def softmax"))
    x = np.random.default_rng(0).standard_normal((70, 200)).astype(np.float32)
    y = np.full_like(x, np.nan)
    names["softmax"](x, y, W=256)
    e = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
