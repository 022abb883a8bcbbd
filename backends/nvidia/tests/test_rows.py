"""Rows that begin anywhere: warpwave/rows.cuh runs on the host, lane by lane, against slices of numpy."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpwave.backends.nvidia.build import INCLUDE
from warpwave.backends.nvidia.runtime.aligned_copies import RowCopy
from warpwave.backends.nvidia.tests.harness import HOST, host_compiler

FILL = 0x7E7E


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    compiler = host_compiler()
    if compiler is None:
        pytest.skip("no C++ compiler here")
    library = tmp_path_factory.mktemp("rows") / "rows.so"
    sanitizer = ["-fsanitize=alignment", "-fsanitize-undefined-trap-on-error"]
    flags = ["-std=c++20", "-O1", "-w", "-shared", "-fPIC", *sanitizer, f"-I{INCLUDE}"]
    subprocess.run([compiler, *flags, "-o", str(library), str(HOST / "rows.cpp")], check=True)
    return ctypes.CDLL(str(library))


def aligned(count: int, dtype=np.uint16) -> np.ndarray:
    """Memory that begins at a multiple of 16 bytes, full of a value that no test writes."""
    memory = np.full(count + 16, FILL & np.iinfo(dtype).max, dtype)
    return memory[-memory.ctypes.data % 16 // memory.itemsize :][:count]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([16, 32, 64, 128]),
    st.integers(0, 7),
    st.integers(0, 40),
    st.integers(-20, 40),
    st.integers(0, 40),
    st.integers(-140, 140),
    st.integers(0, 150),
)
def test_a_tile_is_written_along_its_rows(host, width, start, pad, row, rows, col, cols):
    """At every alignment, with the tensor's edges anywhere: what lies inside is written, and nothing else."""
    tile = np.arange(16 * width, dtype=np.uint16).reshape(16, width)
    pitch, origin = width + pad, 160 * 256  # the tile's place may lie before the tensor's first element
    memory = aligned(2 * origin + 16 * pitch)
    expected = memory.copy()
    for r in range(16):
        for c in range(width):
            if 0 <= row + r < rows and 0 <= col + c < cols:
                expected[origin + start + r * pitch + c] = tile[r, c]
    to = memory.ctypes.data + 2 * (origin + start)
    host.write_tile(width, *map(ctypes.c_void_p, (tile.ctypes.data, to)), ctypes.c_long(pitch), row, rows, col, cols)
    np.testing.assert_array_equal(memory, expected)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(1, 70),
    st.sampled_from([np.uint8, np.uint16, np.uint32]),
    st.integers(0, 20),
    st.lists(st.integers(0, 9), min_size=4, max_size=4),
)
def test_a_copy_has_the_tensors_elements(host, outer, cols, dtype, start, pads):
    """Of any rank, element size and strides; rows of the copy begin at multiples of 128 bytes."""
    shape, strides, pitch = (*outer, cols), [1], cols
    for extent, pad in zip(reversed(outer), pads, strict=False):
        pitch += pad
        strides.insert(0, pitch)
        pitch *= extent
    memory = aligned(start + pitch + 64, dtype)
    memory[:] = np.random.default_rng(0).integers(0, 256, memory.nbytes, np.uint8).view(dtype)[: memory.size]
    source = np.lib.stride_tricks.as_strided(memory[start:], shape, [s * memory.itemsize for s in strides])
    copy = RowCopy(0, memory.itemsize, tuple(shape), tuple(strides))
    target = aligned(copy.nbytes // memory.itemsize, dtype)
    packed = copy.packed(source.ctypes.data, target.ctypes.data)
    host.copy_rows(packed, 7)
    copied = np.lib.stride_tricks.as_strided(target, shape, [s * memory.itemsize for s in copy.copied_strides])
    np.testing.assert_array_equal(copied, source)
    assert all(s * memory.itemsize % 128 == 0 for s in copy.copied_strides[:-1])
