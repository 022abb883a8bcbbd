"""Launches on the reference through the front door: layouts, zero sizes, foreign arrays, threads."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import pytest

import warpwave as ww
from warpwave import cdiv, f32, gl, rt


@ww.kernel
def saxpy(x: gl, y: gl, out: gl, extra: gl | None = None, alpha: float = 1.0, *, B=8):
    m, n = ww.grid(cdiv(out.rows, B), cdiv(out.cols, B))
    tile = ww.load(x, (m, n), rt[f32, B, B]) * alpha + ww.load(y, (m, n), rt[f32, B, B])
    if extra is not None:
        tile = tile + ww.load(extra, (m, n), rt[f32, B, B])
    ww.store(out, (m, n), tile)


class Foreign:
    """An array of another library: only DLPack shows what it is."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


LAYOUTS = {
    "plain": lambda a: a,
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "reversed": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "spaced": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "inside": lambda a: np.pad(a, 5, constant_values=np.nan)[5:-5, 5:-5],
}


def data(shape=(13, 21), seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(-9, 9, shape).astype(np.float32) for _ in range(3)]


@pytest.mark.parametrize("layout_out", LAYOUTS)
@pytest.mark.parametrize("layout_in", LAYOUTS)
def test_any_layout_in_and_out(layout_in, layout_out):
    x, y, out = data()
    out = LAYOUTS[layout_out](out).copy() if layout_out == "plain" else LAYOUTS[layout_out](out)
    saxpy(LAYOUTS[layout_in](x), y, out, alpha=3)
    np.testing.assert_array_equal(out, 3 * x + y)


def test_what_surrounds_an_output_is_left_alone():
    x, y, _ = data()
    around = np.full((40, 40), 77.0, np.float32)
    saxpy(x, y, around[5:18, 6:27])
    inside = np.zeros_like(around, bool)
    inside[5:18, 6:27] = True
    np.testing.assert_array_equal(around[inside], (x + y).reshape(-1))
    assert (around[~inside] == 77).all()


def test_broadcast_inputs():
    _, y, out = data()
    saxpy(np.broadcast_to(np.float32(2), y.shape), np.broadcast_to(y[:1], y.shape), out)
    np.testing.assert_array_equal(out, np.broadcast_to(2 + y[:1], y.shape))


def test_an_optional_tensor_there_and_absent():
    x, y, out = data()
    saxpy(x, y, out, x)
    np.testing.assert_array_equal(out, 2 * x + y)
    saxpy(x, y, out, None)
    np.testing.assert_array_equal(out, x + y)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_zero_size_launches_nothing(shape):
    out = np.zeros(shape, np.float32)
    saxpy(np.zeros(shape, np.float32), np.zeros(shape, np.float32), out)
    assert out.shape == shape


def test_foreign_arrays_are_read_and_written_in_place():
    x, y, out = data()
    saxpy(Foreign(x[::-1]), Foreign(y), Foreign(out[:, ::-1]))
    np.testing.assert_array_equal(out[:, ::-1], x[::-1] + y)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_one_kernel_for_all_dtypes(dtype):
    x, y, out = (a.astype(dtype) for a in data())
    saxpy(x, y, out)
    np.testing.assert_array_equal(out.astype(np.float32), x.astype(np.float32) + y.astype(np.float32))


def test_compile_without_data_then_run_on_any_shape():
    compiled = saxpy.compile(*[ww.spec("f32[?,?]")] * 3, target="reference", B=4)
    for shape in ((1, 1), (4, 4), (7, 17)):
        x, y, out = data(shape)
        compiled.run(x, y, out, alpha=2.0)
        np.testing.assert_array_equal(out, 2 * x + y)


def test_threads_share_one_kernel():
    results = {}

    def work(seed):
        x, y, out = data((19, 11), seed)
        saxpy(x, y, out, B=16)
        results[seed] = np.array_equal(out, x + y)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(8), True)


def test_a_read_only_foreign_output_is_refused():
    x, y, out = data()
    out.flags.writeable = False
    with pytest.raises(ww.TileValueError, match="'out' is written by the kernel, but this array is read-only"):
        saxpy(x, y, Foreign(out))
