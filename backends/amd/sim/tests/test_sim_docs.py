"""The documentation's example runs and shows what the page promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from warpwave.backends.amd.sim import _sim

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs" / "simulator.md").read_text()


def test_example_runs():
    example = ROOT / "docs" / "examples" / "sim_vector_add.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=True)
    assert "vector_add on simulated gfx950" in done.stdout
    assert "global_store_dword" in done.stdout
    assert re.search(r"bounds: .*\n\s+instruction: global_load_dword", done.stdout)


def test_page_names_the_checks_that_exist():
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.M))
    assert named == set(_sim.check_names())
