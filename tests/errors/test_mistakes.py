"""Every mistake is refused at the right place, and docs/errors.md says so."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from warpwave import InternalError

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("_mistakes", HERE / "mistakes.py")
tools = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = tools
spec.loader.exec_module(tools)

MISTAKES = [(section, m) for section in tools.SECTIONS for m in tools.mistakes(tools.load(section))]
IDS = [f"{section}-{m.name}" for section, m in MISTAKES]


@pytest.mark.parametrize(("section", "mistake"), MISTAKES, ids=IDS)
def test_the_error_points_at_the_mistake(section, mistake):
    error = mistake.error()
    assert not isinstance(error, InternalError)
    if mistake.line is None:
        assert error.loc is None
        return
    assert (error.loc.file, error.loc.line) == (str(HERE / f"cases_{section}.py"), mistake.line)
    text = str(error)
    assert f"line {mistake.line}, in {error.loc.function}" in text
    assert re.search(r"^ +\^+$", text, re.MULTILINE), "no caret"


def test_the_page_lists_every_mistake():
    written = (HERE.parents[1] / "docs" / "errors.md").read_text()
    assert written == tools.page(), "run: python tests/errors/mistakes.py > docs/errors.md"


def test_there_are_many_mistakes_of_all_kinds():
    assert len(MISTAKES) >= 80
    assert all(any(s == section for s, _ in MISTAKES) for section in tools.SECTIONS)


def test_every_case_file_is_listed():
    assert {p.stem.removeprefix("cases_") for p in HERE.glob("cases_*.py")} == set(tools.SECTIONS)
