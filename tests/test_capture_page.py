"""docs/capture.md says what is true: its example runs, its refusals are refused so, and the ways out work."""

from __future__ import annotations

import html
import linecache
import re
from pathlib import Path

import numpy as np
import pytest

import warpwave as ww
from warpwave.tiles.tests.programs import captured

PAGE = Path(__file__).parent.parent / "docs" / "capture.md"
HEAD = "import math\nimport random\nimport warpwave as ww\nfrom warpwave import f32, i32, rv\n\n"


def rows():
    for line in PAGE.read_text().splitlines():
        cells = re.split(r"(?<!\\) \| ", line.strip().removeprefix("| ").removesuffix(" |"))
        if len(cells) == 3 and cells[0].startswith("`"):
            yield code(cells[0]), html.unescape(cells[1]), code(cells[2])


def code(cell):
    return "\n".join(re.findall(r"`([^`]*)`(?:<br>|$)", cell))


def program(body, name):
    text = HEAD + "def program(n, x, out):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"__name__": "page"}
    exec(compile(text, name, "exec"), namespace)
    return namespace["program"]


@pytest.mark.parametrize(("written", "reason", "way_out"), list(rows()))
def test_refusals_and_ways_out(written, reason, way_out):
    with pytest.raises(ww.TileError, match=re.escape(reason)):
        captured(program(written, f"<refused {written}>"))
    captured(program(way_out, f"<allowed {way_out}>"))


def test_the_table_is_read():
    assert len(list(rows())) >= 20


def test_the_example_runs(tmp_path):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    file = tmp_path / "example.py"
    file.write_text(block)
    names = {"__name__": "example"}
    exec(compile(block, file, "exec"), names)
    x = np.array([1, 2, 7, 27, 0, -5], np.int32)
    y = np.zeros_like(x)
    names["steps_to_one"](x, y)
    assert y.tolist() == [0, 1, 16, 111, -1, -1]
