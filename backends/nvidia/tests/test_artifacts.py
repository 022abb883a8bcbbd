"""Lowered kernels kept on disk: nothing is lost on the way, and everything that matters is in the key."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import warpwave as ww
from warpwave import f32, gl, st
from warpwave.backends.nvidia import artifacts, build, compilation
from warpwave.backends.nvidia.arch import SM80, SM90A
from warpwave.backends.nvidia.lower import lower as lowering
from warpwave.backends.nvidia.tests.harness import checked, ir_of, lowered_scale, scale, tile_map
from warpwave.tiles import disk_cache
from warpwave.tiles.errors import ResourceError
from warpwave.tiles.ir import walk

X = np.zeros((8, 8), np.float32)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPWAVE_CACHE", str(tmp_path))


@ww.kernel
def printing(x: gl[f32]):
    ww.grid(1)
    ww.print("corner", ww.load(x, (0, 0), st[f32, 8, 8]))


def test_a_lowering_comes_back_whole():
    _, lowered = lowered_scale()
    checks = tuple(op for op in walk(ir_of(checked, X, X, 1.0, 1, True).body) if op.name == "check")
    prints = tuple(op for op in walk(ir_of(printing, X).body) if op.name == "print")
    maps = (tile_map("x", (0, 1)), tile_map("y", (1, 3), swizzle=64))
    whole = replace(lowered, maps=maps, checks=checks, prints=prints, shared_bytes=1234, cluster=2, persistent=True)
    path = artifacts.cache_directory() / "one.json"
    artifacts.save(path, whole, {"registers": 40, "mix": {"LDG": 3}, "hot_loop": None})
    back, resources = artifacts.load(path)
    assert replace(back, checks=(), prints=()) == replace(whole, checks=(), prints=())
    assert resources == {"registers": 40, "mix": {"LDG": 3}, "hot_loop": None}
    (check,), (shown,) = back.checks, back.prints
    assert (check.name, check.attrs["message"], check.loc) == ("check", "too many rows", checks[0].loc)
    assert shown.attrs["message"] == "corner"
    assert [v.tile for v in shown.operands] == [v.tile for v in prints[0].operands]


def key(kernel=None, target="sm90a", **options):
    return artifacts.place(kernel or ir_of(scale, X, X, 1.0), target, options)


def test_equal_kernels_have_one_key():
    assert key() == key()


def test_everything_else_is_in_the_key(monkeypatch):
    keys = {key(), key(target="sm80"), key(stages=2), key(ir_of(scale, X, X, 1.0, B=16)), key(ir_of(printing, X))}
    assert len(keys) == 5
    monkeypatch.setattr(artifacts, "own_version", lambda: "another")
    keys.add(key())
    monkeypatch.setattr(artifacts, "find_compiler", lambda: build.Compiler("another"))
    keys.add(key())
    assert len(keys) == 7


@pytest.fixture
def lowerings(monkeypatch):
    """Lowers `scale` by hand, and counts."""
    count = []
    _, lowered = lowered_scale()

    def lower(kernel, target, options):
        count.append((target.name, options))
        return lowered

    monkeypatch.setattr(lowering, "lower", lower)
    return count


def test_a_kernel_is_lowered_once(lowerings):
    kernel = ir_of(scale, X, X, 1.0)
    first = compilation.compiled(kernel, SM90A, {"a": 1})
    second = compilation.compiled(kernel, SM90A, {"a": 1})
    assert second.lowered == first.lowered
    assert second.resources == first.resources
    compilation.compiled(kernel, SM80, {"a": 1})
    assert lowerings == [("sm90a", {"a": 1}), ("sm80", {"a": 1})]


def test_the_cache_can_be_bypassed(lowerings):
    kernel = ir_of(scale, X, X, 1.0)
    compilation.compiled(kernel, SM90A, {})
    with disk_cache.bypassed():
        compilation.compiled(kernel, SM90A, {})
    assert len(lowerings) == 2


def test_spills_can_be_allowed_and_are_then_not_looked_for(lowerings, monkeypatch):
    kernel = ir_of(scale, X, X, 1.0)
    built = []
    real = build.build
    monkeypatch.setattr("warpwave.backends.nvidia.program.build", lambda *a: (built.append(a), real(*a))[1])
    for _ in range(2):
        assert compilation.compiled(kernel, SM90A, {"allow_spills": True}).kept_resources is None
    assert not built
    assert compilation.compiled(kernel, SM90A, {}).resources["registers"] > 0
    assert compilation.compiled(kernel, SM90A, {}).kept_resources
    assert lowerings == [("sm90a", {})]
    assert len(built) == 1


def test_a_kernel_that_does_not_fit_is_refused_from_the_cache_too(monkeypatch):
    kernel, lowered = lowered_scale()
    monkeypatch.setattr(lowering, "lower", lambda *_: replace(lowered, shared_bytes=300000))
    for _ in range(2):
        with pytest.raises(ResourceError, match="300000 bytes of shared memory a block"):
            compilation.compiled(kernel, SM90A, {})
