"""Kernel parameters in memory: against ctypes' structures, the compiler's own layout, and TMA's published rules."""

from __future__ import annotations

import ctypes
import struct
from itertools import pairwise

import numpy as np
import pytest
from cuda.bindings import driver as cuda
from hypothesis import given
from hypothesis import strategies as st

from warpwave.backends.nvidia.arch import SM90A
from warpwave.backends.nvidia.build import build
from warpwave.backends.nvidia.lowered import Lowered, TensorMap
from warpwave.backends.nvidia.runtime import masks, tensor_maps
from warpwave.backends.nvidia.runtime.masks import ALL, View
from warpwave.backends.nvidia.runtime.packing import Buffer, layout_of, scalar_writers, template
from warpwave.backends.nvidia.runtime.tensor_maps import map_parameters
from warpwave.backends.nvidia.tests.fake_cuda import FakeCuda
from warpwave.backends.nvidia.tests.harness import faked, tile_map
from warpwave.tiles.dtypes import BY_NAME, bf16, bool_, f32, fp8e4m3, i32, i64
from warpwave.tiles.ir import Block, Kernel, Value
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.types import TensorType, scalar

C_SCALARS = {"bool": ctypes.c_bool, "i32": ctypes.c_int32, "i64": ctypes.c_int64, "f32": ctypes.c_float}


def kernel_of(*types) -> Kernel:
    args = [Value(t) for t in types]
    return Kernel("k", [f"p{i}" for i in range(len(types))], {}, Block(args, []), None)


def lowered_with(maps=0, prints=False) -> Lowered:
    specs = tuple(tile_map("p0", (0, 1)) for _ in range(maps))
    return Lowered("", "", "k", 32, 0, 1, False, specs, (), (), ("print",) if prints else ())


class Map(ctypes.Structure):
    _fields_ = (("opaque", ctypes.c_uint64 * 16),)


def tensor_struct(rank):
    rank = max(rank, 1)

    class Tensor(ctypes.Structure):
        _fields_ = (("data", ctypes.c_void_p), ("strides", ctypes.c_int64 * rank), ("extents", ctypes.c_int32 * rank))

    return Tensor


def c_parameters(types, maps, prints):
    """The parameter types as C sees them."""
    own = [tensor_struct(t.rank) if isinstance(t, TensorType) else C_SCALARS[t.dtype.name] for t in types]
    return [*own, *[Map] * maps, ctypes.c_int32 * 4, ctypes.c_void_p, *[ctypes.c_void_p] * prints]


any_type = st.one_of(
    st.builds(TensorType, st.sampled_from([f32, bf16, fp8e4m3]), st.integers(0, 4)),
    st.sampled_from([scalar(i32), scalar(i64), scalar(f32), scalar(bool_)]),
)


def argument(type_, rng):
    if isinstance(type_, TensorType):
        shape = tuple(int(n) for n in rng.integers(0, 2**31, type_.rank))
        strides = tuple(int(n) for n in rng.integers(-(2**40), 2**40, type_.rank))
        return Array(type_.dtype, shape, strides, "dlpack2:0", int(rng.integers(0, 2**47)), None)
    value = {"bool": bool(rng.integers(2)), "f32": float(np.float32(rng.standard_normal()))}
    return value.get(type_.dtype.name, int(rng.integers(-(2**31), 2**31)))


@given(types=st.lists(any_type, max_size=8), maps=st.integers(0, 3), prints=st.booleans(), seed=st.integers(0, 99))
def test_parameters_are_what_c_structures_hold(types, maps, prints, seed):
    """All parameters are put into memory, then read through ctypes at the pointers that the driver would follow."""
    rng = np.random.default_rng(seed)
    values = [argument(t, rng) for t in types]
    sizes = tuple(int(n) for n in rng.integers(0, 2**31, rng.integers(0, 5)))
    layout = layout_of(kernel_of(*types), lowered_with(maps, prints))
    buffer = Buffer(layout)
    buffer.bytes[: layout.nbytes] = template(layout, values, sizes)
    for value, offset, write in zip(values, layout.arguments, scalar_writers(layout), strict=True):
        if write:
            write(buffer.bytes, value)
        else:
            buffer.words[offset // 8] = value.address
    expected = c_parameters(types, maps, prints)
    pointers = (ctypes.c_void_p * len(expected)).from_address(buffer.pointers)
    read = [kind.from_address(pointer) for kind, pointer in zip(expected, pointers, strict=True)]
    for value, found in zip(values, read, strict=False):
        if isinstance(value, Array):
            assert (found.data or 0) == value.address
            rank = len(value.shape)
            assert tuple(found.strides)[:rank] == value.strides
            assert tuple(found.extents)[:rank] == value.shape
        else:
            assert found.value == value
    grid = read[len(types) + maps]
    assert tuple(grid) == (*sizes, 1, 1, 1, 1)[:4]
    for place in read[len(types) : len(types) + maps]:
        assert ctypes.addressof(place) % 64 == 0
    ends = sorted((ctypes.addressof(r), ctypes.addressof(r) + ctypes.sizeof(r)) for r in read)
    assert all(before[1] <= after[0] for before, after in pairwise(ends))


def kernel_parameters(cubin: bytes) -> list[tuple[int, int]]:
    """Offset and size of each parameter as the machine code declares them: EIATTR_KPARAM_INFO in .nv.info.k."""
    shoff, shentsize, shnum, shstrndx = struct.unpack_from("<Q", cubin, 40)[0], *struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, shoff + i * shentsize) for i in range(shnum)]
    names = headers[shstrndx][4]
    found = {}
    for name, _, _, _, offset, size, *_ in headers:
        if cubin[names + name :].split(b"\0")[0] != b".nv.info.k":
            continue
        place = offset
        while place < offset + size:
            kind, attribute, length = struct.unpack_from("<BBH", cubin, place)
            if attribute == 0x17 and kind == 4:
                _, ordinal, at, packed = struct.unpack_from("<IHHI", cubin, place + 4)
                found[ordinal] = (at, packed >> 18)
            place += 4 + (length if kind == 4 else 0)
    return [found[i] for i in sorted(found)]


C_NAMES = {"bool": "bool", "i32": "int", "i64": "long long", "f32": "float"}


@pytest.mark.parametrize("maps", [0, 2])
def test_the_compiler_lays_parameters_out_the_same_way(maps, tmp_path, monkeypatch):
    monkeypatch.setenv("WARPWAVE_CACHE", str(tmp_path))
    types = [
        scalar(bool_), TensorType(f32, 2), scalar(i32), TensorType(bf16, 3), scalar(bool_), scalar(i64), scalar(f32),
        TensorType(f32, 1), TensorType(f32, 4), scalar(i32),
    ]  # fmt: skip
    layout = layout_of(kernel_of(*types), lowered_with(maps, prints=True))
    own = [
        f"tensor<{max(t.rank, 1)}> p{i}" if isinstance(t, TensorType) else f"{C_NAMES[t.dtype.name]} p{i}"
        for i, t in enumerate(types)
    ]
    own += [f"const __grid_constant__ map m{i}" for i in range(maps)]
    source = f"""
      template <int N> struct tensor {{ void *data; long long strides[N]; int extents[N]; }};
      struct alignas(64) map {{ unsigned long long opaque[16]; }};
      struct grid {{ int sizes[4]; }};
      extern "C" __global__ void k({", ".join(own)}, grid g, int *status, unsigned long long *prints) {{}}"""
    lowered = Lowered(source, source, "k", 32, 0, 1, False, (), (), (), ())
    declared = kernel_parameters(build(lowered, SM90A, ALL, 0).cubin)
    if not maps:  # the driver is given pointers; with aligned maps its own offsets count from an unaligned base
        assert [offset for offset, _ in declared] == list(layout.offsets)
    assert [size for _, size in declared] == [ctypes.sizeof(t) for t in c_parameters(types, maps, True)]


# -- which accesses a tensor allows -------------------------------------------------------------------


def view(shape, strides=None, nbytes=2, misalignment=0):
    if strides is None:
        strides = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
    return View(nbytes, tuple(shape), tuple(strides), misalignment)


@pytest.mark.parametrize(
    ("tensor", "wide"),
    [
        (view((64, 64)), True),
        (view((64, 64), misalignment=2), False),
        (view((64, 65)), False),
        (view((64, 64), (72, 1)), True),
        (view((64, 64), (68, 1)), False),
        (view((64, 64), (1, 64)), False),
        (view((64, 64), (0, 1)), True),
        (view((1, 64), (3, 1)), True),
        (view((2, 3, 64, 8), (3 * 64 * 8, 64 * 8, 8, 1)), True),
        (view((2, 3, 64, 8), (3 * 64 * 8 + 1, 64 * 8, 8, 1)), False),
        (view((64, 4), nbytes=4), True),
        (view((16,), nbytes=1), True),
        (view((8,), nbytes=1), False),
        (view((), nbytes=4), False),
        (view((64, 16), nbytes=1, misalignment=8), False),
    ],
)
def test_wide_tensors(tensor, wide):
    assert masks.is_wide(tensor) == wide


@pytest.mark.parametrize(
    ("tensor", "fits"),
    [
        (view((100, 128)), True),
        (view((100, 96)), True),
        (view((100, 97)), False),  # rows of 194 bytes
        (view((100, 97), (104, 1)), True),
        (view((100, 128), misalignment=8), False),
        (view((100, 128), (132, 1)), False),
        (view((100, 128), (-128, 1)), False),
        (view((100, 128), (0, 1)), False),
        (view((1, 128), (0, 1)), True),
        (view((100, 128), (256, 2)), False),
        (view((0, 128)), False),
        (view(()), False),
        (view((100, 128), (1 << 39, 1)), False),  # 2^40 bytes
        (view((100, 128), ((1 << 39) - 8, 1)), True),
        (view((100, 120), nbytes=1), False),
        (view((100, 100), nbytes=4), True),
    ],
)
def test_tensors_for_the_copy_engine(tensor, fits):
    assert masks.fits_maps(tensor) == fits


def test_masks_have_a_bit_for_each_of_the_first_32_tensors():
    wide, narrow = view((64, 64)), view((64, 65))
    assert masks.wide_mask([wide, narrow, wide]) == ALL & ~2
    assert masks.wide_mask([narrow] * 40) == ALL & ~0xFFFFFFFF
    assert masks.wide_mask([wide, view((64, 64), (1, 64)), wide]) == ALL & ~2 & ~(2 << 32)
    assert masks.map_mask([wide, narrow, wide, wide], [True, True, False, True]) == 0b1001
    assert masks.map_mask([wide] * 40, [True] * 40) == 2**32 - 1


# -- tensor maps --------------------------------------------------------------------------------------


def test_a_matrix_map():
    found = map_parameters(TensorMap("x", (0, 1), 128, 256, 128), bf16, (1000, 4096), (4104, 1))
    assert found.data_type == "BFLOAT16"
    assert found.dims == (4096, 1000)
    assert found.strides == (8208,)
    assert found.box == (64, 128)
    assert found.swizzle == 128


def test_a_map_of_four_dimensions():
    spec = TensorMap("q", (2, 3), 64, 128, 128)
    found = map_parameters(spec, bf16, (2, 16, 1000, 128), (16 * 1000 * 128, 1000 * 128, 128, 1))
    assert found.dims == (128, 1000, 16, 2)
    assert found.strides == (256, 1000 * 256, 16 * 1000 * 256)
    assert found.box == (64, 64, 1, 1)


def test_rows_may_run_along_another_axis():
    """[batch, row, head, column], as attention without a transpose has it."""
    spec = TensorMap("q", (1, 3), 64, 64, 64)
    found = map_parameters(spec, f32, (2, 1000, 16, 60), (1000 * 16 * 60, 16 * 60, 60, 1))
    assert found.dims == (60, 1000, 16, 2)
    assert found.strides == (3840, 240, 3840000)
    assert found.box == (16, 64, 1, 1)


cases = st.tuples(
    st.sampled_from(["bf16", "f16", "f32", "fp8e4m3", "fp8e5m2", "i8", "i32"]),
    st.sampled_from([32, 64, 128]),
    st.lists(st.integers(1, 9), max_size=2),  # leading extents
    st.integers(1, 5000),
    st.integers(1, 700),
    st.integers(1, 256),
    st.permutations(range(4)),
    st.integers(0, 4),
)


@given(cases)
def test_maps_keep_the_drivers_rules_and_find_every_element(case):
    """The rules of cuTensorMapEncodeTiled, and the address that its dims and strides give to sampled elements."""
    name, swizzle, leading, rows, cols, box_rows, order, pad = case
    dtype = BY_NAME[name]
    shape = (*leading, rows, cols)
    outer = [axis for axis in order if axis < len(shape) - 1]  # from the one that lies closest
    unit = 16 // dtype.nbytes
    strides, step = [1] * len(shape), -(-cols // unit) * unit + pad * unit
    for axis in outer:
        strides[axis] = step
        step *= shape[axis]
    row_axis = outer[0]
    spec = TensorMap("x", (row_axis, len(shape) - 1), box_rows, swizzle // dtype.nbytes, swizzle)
    assert masks.fits_maps(View(dtype.nbytes, shape, tuple(strides), 0))
    found = map_parameters(spec, dtype, shape, strides)
    assert len(found.dims) == len(found.box) == len(found.strides) + 1 == len(shape)
    assert all(1 <= extent <= 2**32 for extent in found.dims)
    assert all(stride % 16 == 0 and 0 < stride < 2**40 for stride in found.strides)
    assert all(1 <= extent <= 256 for extent in found.box)
    assert found.box[0] * dtype.nbytes == swizzle  # the inner box is the swizzle's span
    rng = np.random.default_rng(0)
    for _ in range(10):
        index = [int(rng.integers(n)) for n in shape]
        address = sum(i * s for i, s in zip(index, strides, strict=True)) * dtype.nbytes
        others = [i for axis, i in enumerate(index) if axis not in spec.axes]
        coordinate = (index[-1], index[row_axis], *reversed(others))
        by_map = sum(c * s for c, s in zip(coordinate, (dtype.nbytes, *found.strides), strict=True))
        assert by_map == address
        assert all(0 <= c < extent for c, extent in zip(coordinate, found.dims, strict=True))


def test_the_driver_is_told_the_parameters(monkeypatch):
    with faked(FakeCuda(), monkeypatch) as fake:
        found = map_parameters(TensorMap("x", (0, 1), 128, 128, 64), fp8e4m3, (300, 256), (256, 1))
        encoded = tensor_maps.encode(found, 0x7F00_0000_0000)
    (call,) = fake.called("cuTensorMapEncodeTiled")
    kind, rank, address, dims, strides, box, steps, interleave, swizzle, _, fill = call
    assert kind == cuda.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT8
    assert (rank, address) == (2, 0x7F00_0000_0000)
    assert [int(n) for n in dims] == [256, 300]
    assert [int(n) for n in strides] == [256]
    assert [int(n) for n in box] == [64, 128]
    assert [int(n) for n in steps] == [1, 1]
    assert interleave == cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE
    assert swizzle == cuda.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_64B
    assert fill == cuda.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
    assert encoded == (0x7F00_0000_0000).to_bytes(8, "little") * 16
