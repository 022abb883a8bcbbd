"""Kernels that do not fit: who takes the registers or the LDS, at which line, and what would fit."""

from __future__ import annotations

import re

import pytest

import warpwave as ww
from warpwave import bf16, cdiv, f32, gl, rt, st
from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.gate import refusal, registers_of_a_lane
from warpwave.backends.amd.lower.lower import emit
from warpwave.backends.amd.resources import fits
from warpwave.backends.amd.usage import registers_in_use, shared_in_use
from warpwave.kernels.attention import attention
from warpwave.tiles.errors import ResourceError

SPEC = ww.spec("f32[?,?]")


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setenv("WARPWAVE_FIT_SECONDS", "120")


@ww.kernel
def two_sums(x: gl[f32], y: gl[f32], *, BM=128, BN=256):
    i = ww.grid(cdiv(x.rows, BM))
    total = ww.zeros(rt[f32, BM, BN])
    largest = ww.zeros(rt[f32, BM, BN])
    smallest = ww.zeros(rt[f32, BM, BN])
    for j in range(cdiv(x.cols, BN)):
        tile = ww.load(x, (i, j), rt[f32, BM, BN])
        total = total + tile
        largest = ww.maximum(largest, tile)
        smallest = ww.minimum(smallest, tile)
    ww.store(y, (i, 0), total - smallest)
    ww.store(y, (i, 1), largest)


@ww.kernel
def two_shared(x: gl[f32], y: gl[f32], *, BM=128, BN=256):
    i, j = ww.grid(cdiv(x.rows, BM), cdiv(x.cols, BN))
    first = ww.load(x, (i, j), st[f32, BM, BN])
    second = ww.load(x, (j, i), st[f32, BM, BN])
    ww.store(y, (i, j), first + second)


def line_of(kernel, text):
    file = kernel.function.__code__.co_filename
    with open(file) as source:
        numbers = [
            n for n, line in enumerate(source, 1) if text in line and n > kernel.function.__code__.co_firstlineno
        ]
    return f"{file}:{numbers[0]}"


def test_registers_are_listed_by_tile_and_line():
    with pytest.raises(ResourceError) as error:
        two_sums.compile(SPEC, SPEC, target="amd:gfx950", options={"waves": 8})
    text = str(error.value)
    assert re.search(r"kernel two_sums does not fit the registers of gfx950: \d+ registers spill to \d+ bytes", text)
    assert "with 8 waves a lane has 256" in text
    for name, code in (
        ("total", "total = total + tile"),
        ("largest", "largest = ww.maximum"),
        ("tile", "tile = ww.load"),
    ):
        row = rf"{name} +rt<f32, 128x256> +64 +{re.escape(line_of(two_sums, code))}"
        assert re.search(row, text), text


def test_a_configuration_that_was_built_is_named_and_fits():
    with pytest.raises(ResourceError) as error:
        two_sums.compile(SPEC, SPEC, target="amd:gfx950", options={"waves": 8})
    assert error.value.hint == "BN=128 fits: it was built"
    used = two_sums.compile(SPEC, SPEC, target="amd:gfx950", options={"waves": 8}, BN=128).resources
    assert used["spills"] == used["scratch_bytes"] == 0


@pytest.mark.parametrize(("target", "limit", "fits"), [("gfx950", 163840, "BN=128"), ("gfx942", 65536, "BN=64")])
def test_shared_memory_is_listed_by_tile_and_line(target, limit, fits):
    with pytest.raises(ResourceError) as error:
        two_shared.compile(SPEC, SPEC, target=f"amd:{target}")
    text = str(error.value)
    assert f"kernel two_shared needs 262144 bytes of shared memory, {target} has {limit}" in text
    for name in ("first", "second"):
        row = rf"{name} +st<f32, 128x256> +131072 +{re.escape(line_of(two_shared, f'{name} = ww.load'))}"
        assert re.search(row, text), text
    assert error.value.hint == f"{fits} fits: it was built"
    constant, _, value = fits.partition("=")
    used = two_shared.compile(SPEC, SPEC, target=f"amd:{target}", **{constant: int(value)}).resources
    assert used["shared_bytes"] <= limit


def test_spills_can_be_allowed():
    program = two_sums.compile(SPEC, SPEC, target="amd:gfx950", options={"waves": 8, "allow_spills": True})
    assert program.resources["spills"] > 0
    with pytest.raises(ResourceError):  # what was allowed once is not allowed to others
        two_sums.compile(SPEC, SPEC, target="amd:gfx950", options={"waves": 8})


@pytest.mark.parametrize(
    ("target", "waves", "registers"), [("gfx950", 4, 512), ("gfx950", 8, 256), ("gfx942", 16, 128), ("gfx942", 1, 512)]
)
def test_registers_of_a_lane(target, waves, registers):
    assert registers_of_a_lane(TARGETS[target], waves) == registers


def test_waves_that_do_not_fit_are_refused():
    kernel = two_sums.compile(SPEC, SPEC, target="reference", BM=32, BN=32).ir
    used = {"spills": 0, "scratch_bytes": 0, "vgprs": 256, "agprs": 256, "waves_per_simd": 0}
    error = refusal(kernel, TARGETS["gfx950"], {"waves": 8}, used)
    assert "8 waves of 512 registers do not fit one CU" in str(error)
    assert not fits(used)
    assert fits({**used, "waves_per_simd": 1})


# -- who is alive, by hand --------------------------------------------------------------------------------


def in_use(kernel, target, *specs, **constants):
    lw = emit(kernel.compile(*specs, target="reference", **constants).ir, TARGETS[target], {})
    uses, loc = registers_in_use(lw)
    return [(u.name, u.amount) for u in uses if u.amount > 1], loc, shared_in_use(lw)


def test_attention_holds_output_queries_and_scores():
    """128 queries of 4 waves: out 128 x 128 / 256 lanes = 64, q the same in bf16 = 32, scores and powers 32 each."""
    uses, loc, shared = in_use(attention, "gfx950", *[ww.spec("bf16[2,8,1024,128]")] * 4)
    assert uses[:3] == [("out", 64), ("q_tile", 32), ("scores", 32)]
    assert loc is not None
    assert {(u.name, u.amount) for u in shared} == {("k_tile", 16384), ("v_tile", 16384)}


def test_tiles_on_their_way_count_where_they_wait_in_registers():
    uses, _, _ = in_use(attention, "gfx942", *[ww.spec("bf16[2,8,1024,128]")] * 4)
    assert {("next k_tile", 16), ("next v_tile", 16)} <= set(uses)


@ww.kernel
def one_after_the_other(x: gl[bf16], y: gl[bf16]):
    ww.grid(1)
    a = ww.load(x, (0, 0), rt[bf16, 64, 64])
    ww.store(y, (0, 0), a)
    b = ww.load(x, (1, 0), rt[bf16, 64, 64])
    ww.store(y, (1, 0), b)


def test_what_is_no_longer_needed_takes_nothing():
    uses, _, _ = in_use(one_after_the_other, "gfx950", ww.spec("bf16[?,?]"), ww.spec("bf16[?,?]"))
    assert len(uses) == 1
