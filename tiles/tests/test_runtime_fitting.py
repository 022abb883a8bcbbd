"""The search for a configuration that fits, with a backend whose limit is the product of the tile sizes."""

from __future__ import annotations

from types import SimpleNamespace
from unittest import mock

import pytest

import warpwave as ww
from warpwave import f32, gl, rt
from warpwave.tiles.errors import ResourceError, TileValueError
from warpwave.tiles.runtime import fitting, registry
from warpwave.tiles.runtime.backend import Target
from warpwave.tiles.runtime.fitting import Candidate, candidates


def listed(constants, options=None, alternatives=None):
    return [str(c) for c in candidates(constants, options or {}, alternatives or {})]


def test_nearest_first_and_only_constants_that_size_tiles():
    constants = {"BM": 64, "BLOCK_K": 32, "D": 128, "causal": True, "B": 48, "BATCH": 64, "scale": None}
    assert listed(constants) == ["BLOCK_K=16", "BM=32", "BM=32, BLOCK_K=16", "BM=16", "BM=16, BLOCK_K=16"]


def test_options_are_changed_to_other_values():
    found = listed({"BM": 32}, {"waves": 4}, {"waves": (4, 8), "stages": (2,)})
    assert found == [
        "options={'stages': 2}",
        "options={'waves': 8}",
        "BM=16",
        "options={'waves': 8, 'stages': 2}",
        "BM=16, options={'stages': 2}",
        "BM=16, options={'waves': 8}",
        "BM=16, options={'waves': 8, 'stages': 2}",
    ]


def test_at_most_three_changes():
    found = candidates({"BM": 256, "BN": 256, "BK": 256}, {}, {})
    assert {c.steps for c in found} == {1, 2, 3}
    assert Candidate({"BM": 128, "BN": 128, "BK": 128}, {}, 3) in found


class Limited:
    """Takes kernels whose tiles have at most `most` elements, half as many for each wave that is missing."""

    name = "limited"

    def __init__(self, most, alternatives=None):
        self.most, self.built = most, []
        if alternatives:
            self.alternatives = alternatives

    def targets(self):
        return [Target("limited", "for tests")]

    def target_for(self, device):
        return None

    def diagnose(self):
        return []

    def compile(self, kernel, target, options):
        constants = kernel.constants
        self.built.append((constants["BM"], constants["BN"], dict(options)))
        if constants["BM"] == 16:
            raise TileValueError("16 is odd here")
        if constants["BM"] * constants["BN"] > self.most * options.get("waves", 1):
            raise ResourceError("too large", hint="use less")
        return SimpleNamespace(resources={})


@ww.kernel
def square(x: gl[f32], *, BM=64, BN=64, N=64):
    ww.store(x, (0, 0), ww.zeros(rt[f32, BM, BN]))


def refused(backend, **constants):
    plugins = {"limited": registry.Plugin("limited", "tests", backend)}
    with mock.patch.object(registry, "_load", return_value=plugins), pytest.raises(ResourceError) as error:
        square.compile(ww.spec("f32[?,?]"), target="limited", **constants)
    return error.value


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setenv("WARPWAVE_FIT_SECONDS", "60")


def test_the_hint_names_what_was_built():
    backend = Limited(64 * 32)
    assert refused(backend).hint == "BN=32 fits: it was built"
    assert backend.built == [(64, 64, {}), (64, 32, {})]


def test_options_help_too():
    backend = Limited(64 * 32, {"waves": (1, 2)})
    assert refused(backend).hint == "options={'waves': 2} fits: it was built"


def test_candidates_that_are_wrong_otherwise_are_passed_over():
    backend = Limited(16 * 16)
    error = refused(backend, BM=32, BN=32)
    assert error.hint == "none of 3 nearby configurations fits; use less"
    assert (16, 16, {}) in backend.built


def test_no_search_when_time_is_up(monkeypatch):
    monkeypatch.setenv("WARPWAVE_FIT_SECONDS", "0")
    backend = Limited(1)
    assert refused(backend).hint == "use less"
    assert len(backend.built) == 1


def test_the_search_stops_in_time(monkeypatch):
    monkeypatch.setenv("WARPWAVE_FIT_SECONDS", "5")
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(fitting, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    backend = Limited(1)
    assert refused(backend).hint == "none of 2 nearby configurations fits; use less"
    assert len(backend.built) == 3
