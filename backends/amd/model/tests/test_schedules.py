"""The order in which schedules are tried, from kept figures, and that tiles are modelled by the first of them."""

from __future__ import annotations

import pytest

from warpwave.backends.amd.model import schedules
from warpwave.backends.amd.model.choice import schedule_of
from warpwave.backends.amd.model.schedules import PREFERRED, Figure, Product, ranking
from warpwave.backends.amd.model.traffic import TileGemm
from warpwave.backends.amd.plan import SCHEDULES


@pytest.fixture
def figures(monkeypatch):
    """Figures as a test gives them, the same alone and together."""

    def use(**clocks):
        table = {name.replace("_", "-"): Figure(n, n) for name, n in clocks.items()}
        monkeypatch.setattr(schedules, "_figures", lambda: {("gfx950", 2, "product", True): {(128, 128): table}})
        found = ranking(Product("gfx950", 2, True, (128, 128)))
        assert found is not None
        return found.names

    return use


def test_the_fastest_comes_first(figures):
    assert figures(multistage=200, ping_pong=100) == ("ping-pong", "multistage")
    assert figures(multistage=100, ping_pong=200) == ("multistage", "ping-pong")


def test_what_the_model_cannot_tell_apart_goes_by_preference(figures):
    assert figures(multistage=104, ping_pong=100) == ("multistage", "ping-pong")
    assert figures(multistage=106, ping_pong=100) == ("ping-pong", "multistage")
    assert figures(multistage=200, ping_pong=104, interleave=100) == ("ping-pong", "interleave", "multistage")
    assert figures(multistage=200, ping_pong=110, interleave=100) == ("interleave", "ping-pong", "multistage")


def test_other_tiles_go_by_the_nearest_and_unknown_operands_by_nothing():
    found = ranking(Product("gfx950", 2, True, (192, 320)))
    assert found is not None
    assert found.tile == (256, 256)
    assert ranking(Product("gfx950", 4, True, (128, 128))) is None


def test_names_are_those_of_the_option():
    assert set(PREFERRED) < set(SCHEDULES)
    for table in schedules._figures().values():
        for names in table.values():
            assert set(names) <= set(PREFERRED)
            assert "multistage" in names


@pytest.mark.parametrize(
    ("target", "tile", "itemsize", "along_rows", "expected"),
    [
        ("gfx950", (256, 256), 2, True, "ping-pong"),
        ("gfx950", (128, 128), 2, True, "interleave"),
        ("gfx950", (64, 128), 2, True, "multistage"),
        ("gfx950", (128, 256), 1, False, "multistage"),
        ("gfx942", (128, 64), 2, False, "multistage"),
        ("gfx950", (256, 256), 4, True, "multistage"),
    ],
)
def test_tiles_are_modelled_by_what_auto_tries_first(target, tile, itemsize, along_rows, expected):
    problem = TileGemm(4096, 4096, 4096, *tile, 64, itemsize)
    assert schedule_of(target, problem, along_rows) == expected
