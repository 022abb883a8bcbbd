"""Borrowing arrays: NumPy, and DLPack capsules packed byte by byte from the DLPack header's layout."""

from __future__ import annotations

import ctypes
import gc
import itertools
import struct
import sys
import types
import weakref

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpwave.tiles import dtypes
from warpwave.tiles.errors import TileTypeError
from warpwave.tiles.runtime.arrays import borrow, may_overlap_itself

# dmlc/dlpack dlpack.h: DLTensor is data, device type and id, ndim, dtype code/bits/lanes, shape, strides, offset.
TENSOR = "PiiiBBHPPQ"

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class Exporter:
    """An array of some other library: a device, a dtype code, and memory that NumPy owns."""

    def __init__(
        self, array, code, *, bits=None, lanes=1, device=(1, 0), version=None, flags=0, strides=True, offset=0
    ):
        self.array, self.device, self.version = array, device, version
        self.shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        self.strides = (ctypes.c_int64 * max(array.ndim, 1))(*(s // array.itemsize for s in array.strides))
        tensor = struct.pack(
            TENSOR,
            array.ctypes.data - offset,
            *device,
            array.ndim,
            code,
            bits or array.itemsize * 8,
            lanes,
            ctypes.addressof(self.shape),
            ctypes.addressof(self.strides) if strides else 0,
            offset,
        )
        if version:
            self.name, packed = b"dltensor_versioned", struct.pack("IIPPQ", *version, 0, 0, flags) + tensor
        else:
            self.name, packed = b"dltensor", tensor + struct.pack("PP", 0, 0)
        self.memory = ctypes.create_string_buffer(packed, len(packed))

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **kwargs):
        if self.version is None and "max_version" in kwargs:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.kwargs = kwargs
        return new_capsule(ctypes.addressof(self.memory), self.name, None)


class OnlyDlpack:
    """Hides that an array is NumPy's, so that its DLPack export is used."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


VIEWS = {
    "plain": lambda a: a,
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1, ::-2],
    "strided": lambda a: a[1::2, ::3],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "empty": lambda a: a[:0],
    "one": lambda a: a[1:2, 2:3],
}


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
@pytest.mark.parametrize("view", VIEWS)
def test_numpy_views_keep_dtype_shape_strides_and_address(dtype, view):
    base = np.arange(60).reshape(6, 10).astype(dtype.numpy)
    array = VIEWS[view](base)
    got = borrow(array)
    assert (got.dtype, got.shape, got.device, got.on_host) == (dtype, array.shape, "cpu:0", True)
    assert [s * array.itemsize for s in got.strides] == list(array.strides)
    assert got.address == array.ctypes.data
    assert got.host is array
    assert got.writable == array.flags.writeable


@pytest.mark.parametrize("name", ["float64", "uint8", "uint32", "int16", "complex64", ">f4", "U3", "datetime64[s]"])
def test_other_dtypes_are_refused(name):
    with pytest.raises(TileTypeError, match=r"is not an element type|not in native byte order"):
        borrow(np.zeros(3, name))


def test_strides_that_are_no_whole_elements_are_refused():
    packed = np.zeros(4, np.dtype([("x", np.int8), ("y", np.float32)], align=False))
    with pytest.raises(TileTypeError, match="not whole elements of 4 bytes"):
        borrow(packed["y"])


def test_lists_and_numbers_are_no_arrays():
    for value in ([1.0, 2.0], 3.0, "bf16[2]"):
        with pytest.raises(TileTypeError, match="is no array"):
            borrow(value)


@pytest.mark.parametrize("name", ["float32", "float16", "int64", "int32", "int8", "bool"])
@pytest.mark.parametrize("view", ["plain", "transposed", "strided", "empty", "one", "reversed"])
def test_dlpack_of_numpy_shows_the_same_elements(name, view):
    array = VIEWS[view](np.arange(60).reshape(6, 10).astype(name))
    got = borrow(OnlyDlpack(array))
    assert (got.dtype.numpy, got.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(got.host, array)
    if array.size:
        assert got.address == array.ctypes.data
        for n, ours, theirs in zip(array.shape, got.strides, array.strides, strict=True):
            assert n == 1 or ours * array.itemsize == theirs  # the stride of a single element means nothing


def test_writing_through_a_dlpack_view_reaches_the_owner():
    array = np.zeros((3, 4), np.float32)
    view = borrow(OnlyDlpack(array[:, ::-1]))
    view.host[0, 0] = 7
    assert array[0, 3] == 7


CODES = {  # DLDataTypeCode of dlpack.h, for 8- and 16-bit floats that NumPy cannot export
    4: ml_dtypes.bfloat16,
    10: ml_dtypes.float8_e4m3fn,
    11: ml_dtypes.float8_e4m3fnuz,
    12: ml_dtypes.float8_e5m2,
    13: ml_dtypes.float8_e5m2fnuz,
}


@pytest.mark.parametrize("version", [None, (1, 0), (1, 1)])
@pytest.mark.parametrize("code", CODES)
def test_dlpack_small_floats_keep_their_bits(code, version):
    bits = np.arange(256 if code != 4 else 65536, dtype=np.uint8 if code != 4 else np.uint16).reshape(16, -1)
    got = borrow(Exporter(bits.view(CODES[code]), code, version=version))
    assert got.host.dtype == CODES[code]
    np.testing.assert_array_equal(got.host.view(bits.dtype), bits)


def test_dlpack_without_strides_is_row_major_and_offset_counts():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    got = borrow(Exporter(array, 2, strides=False, offset=8))
    assert got.strides == (12, 4, 1)
    np.testing.assert_array_equal(got.host, array)


def test_dlpack_read_only_flag():
    array = np.zeros(4, np.float32)
    assert not borrow(Exporter(array, 2, version=(1, 0), flags=1)).writable
    assert borrow(Exporter(array, 2, version=(1, 0))).writable


@pytest.mark.parametrize(("device", "name", "host"), [((2, 1), "dlpack2:1", False), ((3, 0), "cpu:0", True)])
def test_dlpack_devices(device, name, host):
    exporter = Exporter(np.zeros(4, np.float32), 2, device=device)
    got = borrow(exporter)
    assert (got.device, got.on_host, got.host is not None) == (name, host, host)
    assert ("stream" in exporter.kwargs) == (not host)


@pytest.mark.parametrize(
    ("change", "text"),
    [({"code": 2, "bits": 64}, "float64"), ({"code": 1}, "uint32"), ({"code": 2, "lanes": 4}, "float32x4"),
     ({"code": 9, "bits": 8}, "DLPack code 9")],
)  # fmt: skip
def test_dlpack_dtypes_that_the_language_lacks(change, text):
    with pytest.raises(TileTypeError, match=f"dtype {text}.* is not an element type"):
        borrow(Exporter(np.zeros(4, np.float32), change.pop("code"), **change))


def test_dlpack_future_version_and_failed_export():
    with pytest.raises(TileTypeError, match=r"DLPack version 2\.0 is not understood"):
        borrow(Exporter(np.zeros(4, np.float32), 2, version=(2, 0)))

    class Gradient(OnlyDlpack):
        requires_grad = True

        def __dlpack__(self, **kwargs):
            raise BufferError("Can't export tensors that require gradient")

    with pytest.raises(TileTypeError, match="require gradient") as info:
        borrow(Gradient(np.zeros(3, np.float32)))
    assert "detach" in info.value.hint


def test_the_view_keeps_its_owner_alive_and_no_longer():
    array = np.zeros(5, np.float32)
    owner = OnlyDlpack(array)
    watch = weakref.ref(owner)
    view = borrow(owner)
    del owner
    gc.collect()
    assert watch() is not None
    del view
    gc.collect()
    assert watch() is None


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-7, 7)), min_size=1, max_size=4),
)
def test_self_overlap_is_exact_for_small_arrays(dims):
    shape, strides = [n for n, _ in dims], [s for _, s in dims]
    offsets = [
        sum(i * s for i, s in zip(index, strides, strict=True)) for index in itertools.product(*map(range, shape))
    ]
    assert may_overlap_itself(shape, strides) == (len(set(offsets)) < len(offsets))


def test_self_overlap_of_large_arrays():
    assert not may_overlap_itself((100000, 100000), (100000, 1))
    assert not may_overlap_itself((100000, 100000), (-1, 100000))
    assert may_overlap_itself((100000, 100000), (0, 1))
    assert may_overlap_itself((100000, 3), (1, 1))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_pytorchs_8_bit_floats_are_read_as_bytes(name, monkeypatch):
    """Its releases export them under their own codes, as raw bytes, or refuse."""
    torch = types.ModuleType("torch")
    torch.uint8 = object()
    monkeypatch.setitem(sys.modules, "torch", torch)
    bits = np.arange(256, dtype=np.uint8).reshape(16, 16).T
    exporter = Exporter(bits, 1)

    class Tensor:
        dtype = f"torch.{name}"

        def view(self, dtype):
            assert dtype is torch.uint8
            return exporter

        def __dlpack__(self, **_):
            raise BufferError("no such type in DLPack")

        __dlpack_device__ = None

    tensor = Tensor()
    got = borrow(tensor)
    assert got.dtype.numpy == np.dtype(getattr(ml_dtypes, name))
    assert (got.shape, got.strides, got.address) == ((16, 16), (1, 16), bits.ctypes.data)
    assert got.owner[1] is tensor
    np.testing.assert_array_equal(got.host.view(np.uint8), bits)
