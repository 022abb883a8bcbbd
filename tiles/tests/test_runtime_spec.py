from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave.tiles.errors import TileTypeError, TileValueError


@pytest.mark.parametrize(
    ("text", "dtype", "shape"),
    [
        ("bf16[512,256]", ww.bf16, (512, 256)),
        (" fp8e4m3fnuz [ 1 , ?, 3,4 ] ", ww.fp8e4m3fnuz, (1, None, 3, 4)),
        ("bool[7]", ww.bool_, (7,)),
        ("f32[0,5]", ww.f32, (0, 5)),
    ],
)
def test_array_specs(text, dtype, shape):
    got = ww.spec(text)
    assert (got.dtype, got.shape) == (dtype, shape)
    assert ww.spec(str(got)) == got


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("i32=5", 5),
        ("i64=-9000000000", -9000000000),
        ("i32=0x10", 16),
        ("f32=1e-5", 1e-5),
        ("bool=true", True),
        ("i32", None),
    ],
)
def test_scalar_specs(text, value):
    got = ww.spec(text)
    assert got.value == value
    assert ww.spec(str(got)) == got


def test_none_is_an_absent_tensor():
    assert ww.spec("none") is None


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("bf17[2]", TileTypeError, "there is no dtype 'bf17'"),
        ("bf16", TileTypeError, "a scalar is one of i32, i64, f32, bool"),
        ("bf16[2,x]", TileValueError, "the extent 'x' is neither a number nor"),
        ("bf16[2,-1]", TileValueError, "the extent '-1'"),
        ("i32=five", TileValueError, "'five' is not a value of i32"),
        ("bf16(2)", TileValueError, "cannot read the argument"),
        (5, TileValueError, "cannot read the argument 5"),
    ],
)
def test_bad_specs(text, kind, message):
    with pytest.raises(kind, match=message):
        ww.spec(text)


def test_nearest_dtype_is_offered():
    with pytest.raises(TileTypeError, match="did you mean bf16"):
        ww.spec("bf17[2]")


@pytest.mark.parametrize("name", ["bf16", "f32", "fp8e5m2", "i8", "i32", "bool"])
def test_random_data(name):
    spec = ww.spec(f"{name}[40,50]")
    a, b = spec.random(np.random.default_rng(3)), spec.random(np.random.default_rng(3))
    assert (a.shape, a.dtype) == ((40, 50), spec.dtype.numpy)
    assert a.tobytes() == b.tobytes()
    assert len(np.unique(a.astype(np.float32))) > (1 if name == "bool" else 10)


def test_random_data_needs_all_extents():
    with pytest.raises(TileValueError, match="unknown extent"):
        ww.spec("bf16[?,4]").random(np.random.default_rng(0))
