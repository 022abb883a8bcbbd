"""Kernels that do not fit: what the errors say, the configuration that they name, and the drawings of layouts."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import warpwave as ww
from warpwave import bf16, f32, gl, rt, st
from warpwave.backends.nvidia.arch import SM80, SM89, SM90A
from warpwave.backends.nvidia.backend import BACKEND
from warpwave.backends.nvidia.compilation import compiled
from warpwave.backends.nvidia.gate import refusal
from warpwave.backends.nvidia.tests.harness import ir_of, scale
from warpwave.tiles.errors import ResourceError

X = np.zeros((256, 256), ml_dtypes.bfloat16)
USED = {"shared_bytes": 0, "spills": 0, "scratch_bytes": 0, "registers": 64}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPWAVE_CACHE", str(tmp_path))


@ww.kernel
def greedy(a: gl[bf16], c: gl[f32], *, BM=32):
    ww.grid(1)
    first = ww.load(a, (0, 0), rt[f32, BM, 256])
    second = ww.load(a, (1, 0), rt[f32, BM, 256])
    total = first * second
    for _ in ww.range(4):
        total = total * first + second
    ww.store(c, (0, 0), total)


def test_a_kernel_that_fits_is_not_refused():
    assert refusal(ir_of(scale, *[np.zeros((8, 8), np.float32)] * 2, 1.0), SM90A, {}, USED, 128) is None


def test_spills_name_the_tiles_that_take_registers():
    kernel = ir_of(greedy, X, X.astype(np.float32))
    with pytest.raises(ResourceError) as caught:
        compiled(kernel, SM80, {"warps": 2})
    message = str(caught.value)
    assert "kernel greedy does not fit the registers of nvidia:sm80" in message
    assert "64 threads have 255 each" in message
    assert "tiles alive where most are (line " in message
    rows = [line.split() for line in message.splitlines() if " 128 " in line]  # 32 x 256 numbers over 64 threads
    assert {"first", "second", "total"} <= {row[0] for row in rows}
    assert "options={'warps'" in message


def test_allowed_spills_are_not_refused():
    kernel = ir_of(greedy, X, X.astype(np.float32))
    assert compiled(kernel, SM80, {"warps": 2, "allow_spills": True}).resources["spills"] > 0


def test_too_much_shared_memory_is_refused():
    kernel = ir_of(scale, *[np.zeros((8, 8), np.float32)] * 2, 1.0)
    used = {**USED, "shared_bytes": 200 << 10}
    assert refusal(kernel, SM90A, {}, used, 128) is None
    error = refusal(kernel, SM80, {}, used, 128)
    assert "kernel scale needs 204800 bytes of shared memory a block, nvidia:sm80 has 166912" in str(error)


def test_the_error_names_a_configuration_that_was_built(monkeypatch):
    monkeypatch.setenv("WARPWAVE_FIT_SECONDS", "60")
    with pytest.raises(ResourceError) as caught:
        greedy.compile(X, X.astype(np.float32), target="nvidia:sm80", options={"warps": 2})
    assert caught.value.hint == "options={'warps': 8} fits: it was built"
    fitting = greedy.compile(X, X.astype(np.float32), target="nvidia:sm80", options={"warps": 8})
    assert fitting.resources["spills"] == 0


@pytest.mark.parametrize(("target", "threads", "registers"), [(SM90A, 384, 168), (SM90A, 128, 255), (SM89, 1024, 64)])
def test_registers_of_a_thread(target, threads, registers):
    assert target.registers_of_a_thread(threads) == registers


@ww.kernel
def product(a: gl[bf16], b: gl[bf16], c: gl[f32]):
    m, n = ww.grid(ww.cdiv(c.rows, 64), ww.cdiv(c.cols, 64))
    acc = ww.zeros(rt[f32, 64, 64])
    for k in ww.pipeline(ww.cdiv(a.cols, 64)):
        at = ww.load(a, (m, k), st[bf16, 64, 64])
        bt = ww.load(b, (n, k), st[bf16, 64, 64])
        acc = ww.mma_ABt(acc, at, bt)
    ww.store(c, (m, n), acc)


def test_layouts_are_drawn():
    """Each element of a register tile has an owner; the shared tiles are swizzled as kittens::st is."""
    kernel = ir_of(product, X, X, X.astype(np.float32))
    found = {(t.name, t.placement is not None): t for t in BACKEND.layouts(kernel, "nvidia:sm90a", {})}
    assert ("acc", False) in found
    placed = found["at", True].placement
    row, chunk, byte = (np.indices((64, 64, 2))[i] for i in (0, 1, 2))
    expected = row * 128 + ((chunk // 8 ^ row % 8) * 16 + chunk % 8 * 2)  # thunderkittens.md 2.3
    np.testing.assert_array_equal(placed.offsets, expected[..., 0])
    assert byte.max() == 1
