"""Packing of arguments and copies of host memory, against the compiler's metadata and plain arithmetic."""

from __future__ import annotations

import re
import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpwave as ww
from warpwave import bool_, f32, gl, i32, i64, rt
from warpwave.backends.amd.arguments import has_wide_rows, values
from warpwave.tiles.dtypes import BY_NAME
from warpwave.tiles.errors import CheckFailed
from warpwave.tiles.runtime.arrays import Array, borrow
from warpwave.tiles.runtime.spans import Span, regions, span


@ww.kernel
def mixed(a: gl[f32], flag: bool_, scale: f32, b: gl[i32], big: i64, small: i32, c: gl[f32]):
    i = ww.grid(a.rows)
    x = ww.load(a, (i, 0), rt[f32, 1, 8]) * scale + ww.cast(big, f32) + ww.cast(small, f32)
    x = ww.where(flag, x, 0.0) + ww.cast(ww.load(b, (i, 0), rt[i32, 1, 8]), f32)
    ww.store(c, (i, 0), x)


@pytest.fixture(scope="module")
def program():
    a, b = ww.spec("f32[?,?]"), ww.spec("i32[?,?]")
    arguments = {"flag": ww.spec("bool"), "scale": ww.spec("f32"), "big": ww.spec("i64"), "small": ww.spec("i32")}
    return mixed.compile(a=a, b=b, c=a, **arguments, target="amd:gfx950").program


def test_parameters_lie_where_the_compiler_put_them(program):
    layout = program.packer.layout
    found = re.findall(r"\.offset:\s+(\d+)\s+\.size:\s+(\d+)", program.asm.split(".amdgpu_metadata")[1])
    explicit = [(int(offset), int(size)) for offset, size in found][: len(layout.unpack(bytes(layout.size)))]
    place, expected = 0, []
    for code, count in re.findall(r"(\D)(\d*)", _expanded(layout.format.removeprefix("@"))):
        assert count == ""
        size = struct.calcsize(code)
        place = -(-place // size) * size
        expected.append((place, size))
        place += size
    assert explicit == expected
    assert layout.size == place


def _expanded(codes: str) -> str:
    return re.sub(r"(\d+)(\D)", lambda m: int(m[1]) * m[2], codes)


def test_values_follow_the_parameters(program):
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    y = np.arange(24, dtype=np.int32).reshape(3, 8)
    arguments = {"a": borrow(x[::-1]), "flag": True, "scale": 2.5, "b": borrow(y), "big": -(2**40), "small": 7}
    arguments["c"] = borrow(np.zeros((3, 8), np.float32))
    geometry = program.packer.geometry(arguments)
    packed = values(list(arguments.values()), [100, 0, 0, 200, 0, 0, 300], geometry.spans)
    data = program.packer.layout.pack(*packed, *geometry.tail, 0)
    assert packed[:6] == [100, 64, -8, 1, 3, 8]
    assert packed[6:8] == [True, 2.5]
    assert len(data) == program.packer.layout.size
    assert geometry.blocks == 3
    assert program.packer.geometry(arguments) is geometry
    assert program.packer.geometry({**arguments, "scale": 0.5}) is geometry  # the grid does not depend on it
    assert program.packer.geometry({**arguments, "a": borrow(x)}) is not geometry


@st.composite
def views(draw):
    rank = draw(st.integers(1, 4))
    shape = [draw(st.integers(1, 5)) for _ in range(rank)]
    base = np.zeros([n * 3 for n in shape], draw(st.sampled_from([np.int8, np.float16, np.float32])))
    index = []
    for extent in shape:
        step = draw(st.sampled_from([-2, -1, 1, 2]))
        start = draw(st.integers(0, 2))
        index.append(slice(start + (extent - 1) * 2, None, step) if step < 0 else slice(start, None, step))
    return base[tuple(index)].transpose(draw(st.permutations(range(rank))))


@settings(deadline=None)
@given(views())
def test_span_is_numpys_byte_bounds(view):
    found = span(borrow(view), 1)
    low, high = np.lib.array_utils.byte_bounds(view)
    assert (found.address, found.nbytes) == (low, high - low)
    assert found.address + found.offset == view.ctypes.data


def test_atomics_span_whole_words():
    data = np.zeros(8, np.float16)
    found = span(borrow(data[1:4]), 4)
    assert (found.address - data.ctypes.data, found.nbytes, found.offset) == (0, 8, 2)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12), st.booleans()), max_size=8))
def test_regions_cover_the_arrays_and_do_not_touch(arrays):
    found = regions([Span(a, n, 0) for a, n, _ in arrays], [w for _, _, w in arrays])
    covered = {byte for a, n, _ in arrays for byte in range(a, a + n)}
    assert {byte for r in found for byte in range(r.address, r.address + r.nbytes)} == covered
    for first, second in pairwise(found):
        assert first.address + first.nbytes <= second.address
    for region in found:
        inside = [w for a, n, w in arrays if n and region.address <= a < region.address + region.nbytes]
        assert region.written == any(inside)


@pytest.mark.parametrize(
    ("make", "wide"),
    [
        (lambda x: x, True),
        (lambda x: x[:, 8:], True),
        (lambda x: x[:, 1:], False),
        (lambda x: x[:, :60], True),
        (lambda x: x[:, :62], False),
        (lambda x: x[::3], True),
        (lambda x: x[::-1], False),
        (lambda x: x.T, False),
    ],
)
def test_wide_rows(make, wide):
    raw = np.zeros(64 * 64 + 4, np.float32)
    start = -raw.ctypes.data // 4 % 4
    assert has_wide_rows(borrow(make(raw[start : start + 4096].reshape(64, 64))), {0: 16, 1: 64}) is wide


@pytest.mark.parametrize(
    ("strides", "tile", "wide"),
    [
        ((2**31, 2**12, 1), {1: 256, 2: 64}, True),  # the batch is no part of the tile
        ((2**12, 2**22, 1), {1: 256, 2: 64}, True),
        ((2**12, 2**23, 1), {1: 256, 2: 64}, False),
        ((2**12, 2**23, 1), {1: 128, 2: 64}, True),
        ((2**12, 2**23, 1), {}, True),  # never staged in shared memory: all offsets have 64 bits
        ((-(2**12), 2**8, 1), {1: 256, 2: 64}, True),
        ((2**12, -(2**8), 1), {1: 256, 2: 64}, False),
    ],
)
def test_offsets_within_a_tile_have_32_bits(strides, tile, wide):
    one = np.zeros(4, np.uint16)
    address = -(-one.ctypes.data // 16) * 16
    array = Array(BY_NAME["bf16"], (4, 4096, 64), strides, "host", address, one)
    assert has_wide_rows(array, tile) is wide


@ww.kernel
def chosen(x: gl[f32], blocks: i32, factor: f32):
    ww.check(blocks < 5, "too many")
    i = ww.grid(blocks)
    ww.store(x, (i, 0), ww.full(rt[f32, 1, 4], 1.0) * factor)


def test_numbers_that_decide_the_grid_are_looked_at_each_time():
    x = borrow(np.zeros((4, 4), np.float32))
    packer = chosen.compile(x, 2, 1.0, target="amd:gfx950").program.packer
    assert packer.geometry({"x": x, "blocks": 2, "factor": 1.0}).blocks == 2
    assert packer.geometry({"x": x, "blocks": 4, "factor": 1.0}).blocks == 4
    assert packer.geometry({"x": x, "blocks": 0, "factor": 1.0}).blocks == 0
    with pytest.raises(CheckFailed, match="too many"):
        packer.geometry({"x": x, "blocks": 5, "factor": 1.0})
