"""The figures that `schedule="auto"` goes by are those of today's code, to what the timing model resolves.

`python -m warpwave.bench.grid_model.schedules` makes them again.
"""

from __future__ import annotations

import json

import pytest

from warpwave.backends.amd.model.schedules import FIGURES, RESOLUTION, Chain
from warpwave.bench.grid_model import chains
from warpwave.bench.grid_model.schedules import row, rows

CASES = [("gfx950", "bf16", (128, 128), "ping-pong"), ("gfx942", "bf16", (64, 64), "multistage")]


def key(figures):
    names = ("target", "itemsize", "along_rows", "masked", "tile", "schedule")
    return tuple(str(figures.get(name)) for name in names)


def kept():
    return {key(figures): figures for figures in json.loads(FIGURES.read_text())}


def assert_as_kept(made):
    for situation in ("alone", "full"):
        assert RESOLUTION < made[situation] / kept()[key(made)][situation] < 1 / RESOLUTION, made


@pytest.mark.parametrize(("target", "dtype", "tile", "schedule"), CASES)
def test_a_few(target, dtype, tile, schedule):
    assert_as_kept(row(target, dtype, tile, schedule, transpose_b=True))


def test_a_chain():
    assert_as_kept(chains.row(Chain("gfx950", 2, False, (128, 64, 64)), "multistage"))


def test_what_does_not_apply_has_no_figures():
    """On gfx942 tiles pass through registers, of which ping-pong has too few for 64 keys of 128 elements."""
    assert chains.row(Chain("gfx942", 2, False, (256, 64, 128)), "ping-pong") is None


@pytest.mark.sweep
def test_all():
    made = list(rows())
    assert {key(figures) for figures in made} == set(kept())
    for figures in made:
        assert_as_kept(figures)
