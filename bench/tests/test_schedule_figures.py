"""The figures that `schedule="auto"` goes by are those of today's code, to what the timing model resolves.

`python -m warpwave.bench.grid_model.schedules` makes them again.
"""

from __future__ import annotations

import json

import pytest

from warpwave.backends.amd.model.schedules import FIGURES, RESOLUTION
from warpwave.bench.grid_model.schedules import row, rows

CASES = [("gfx950", "bf16", (128, 128), "ping-pong"), ("gfx942", "bf16", (64, 64), "multistage")]


def key(figures):
    return tuple(str(figures[name]) for name in ("target", "itemsize", "along_rows", "tile", "schedule"))


def kept():
    return {key(figures): figures for figures in json.loads(FIGURES.read_text())}


def assert_as_kept(made):
    for situation in ("alone", "full"):
        assert RESOLUTION < made[situation] / kept()[key(made)][situation] < 1 / RESOLUTION, made


@pytest.mark.parametrize(("target", "dtype", "tile", "schedule"), CASES)
def test_a_few(target, dtype, tile, schedule):
    assert_as_kept(row(target, dtype, tile, schedule, transpose_b=True))


@pytest.mark.sweep
def test_all():
    made = list(rows())
    assert {key(figures) for figures in made} == set(kept())
    for figures in made:
        assert_as_kept(figures)
