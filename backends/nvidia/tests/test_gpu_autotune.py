"""`@ww.autotune` on a real GPU: times that are a device's, results that are right, graphs. Run with `pytest -m gpu`."""

from __future__ import annotations

import statistics
import threading

import pytest

import warpwave as ww
from warpwave import cdiv, f32, gl, rt, st
from warpwave.backends.nvidia.arch import target_of
from warpwave.backends.nvidia.runtime import devices
from warpwave.tiles.errors import LaunchError

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _device(monkeypatch, tmp_path):
    if not devices.devices():
        pytest.skip("no NVIDIA GPU here")
    if target_of(devices.devices()[0].capability) is None:
        pytest.skip(f"{devices.devices()[0]} has no target")
    monkeypatch.setenv("WARPWAVE_CACHE", str(tmp_path))


def tuned_product():
    @ww.autotune([ww.Config(BM=16, BN=16), ww.Config(BM=128, BN=128), ww.Config(BM=64, BN=64), ww.Config(BM=1024)])
    @ww.kernel
    def product(a: gl, b: gl, c: gl, *, BM=64, BN=64, BK=64):
        """c = a b^T"""
        m, n = ww.grid(cdiv(c.rows, BM), cdiv(c.cols, BN))
        acc = ww.zeros(rt[f32, BM, BN])
        for k in ww.pipeline(cdiv(a.cols, BK)):
            at, bt = ww.load(a, (m, k), st[a.dtype, BM, BK]), ww.load(b, (n, k), st[b.dtype, BN, BK])
            acc = ww.mma_ABt(acc, at, bt)
        ww.store(c, (m, n), acc)

    return product


def operands(torch, size):
    a, b = (torch.randint(-3, 4, (size, size), device="cuda").bfloat16() for _ in range(2))
    return a, b, torch.full((size, size), -1.0, device="cuda")


def events(torch, function):
    """Milliseconds on the device, L2 flushed, as PyTorch measures."""
    flush, times = torch.empty(64 << 20, dtype=torch.int32, device="cuda"), []
    for _ in range(20):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.zero_()
        start.record()
        function()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def test_a_product(torch):
    a, b, c = operands(torch, 2048)
    kernel = tuned_product()
    found = kernel.tuning(a, b, c)
    print(found)
    assert bool((c == -1).all())
    assert found.how == f"measured on {torch.cuda.get_device_name()}"
    assert found.trials[found.best].seconds == min(trial.seconds for trial in found.trials[:3])
    assert found.best != 0  # tiles of 16 x 16 read every operand 128 times
    assert found.trials[3].why.startswith("refused: ")
    kernel(a, b, c)
    assert bool((c == a.float() @ b.float().T).all())
    slow = events(torch, lambda: kernel(a, b, c, BM=16, BN=16))
    assert found.trials[0].seconds * 1e3 == pytest.approx(slow, rel=0.2)


def test_in_place_and_accumulating(torch):
    @ww.autotune([ww.Config(B=16), ww.Config(B=32), ww.Config(B=64)])
    @ww.kernel
    def doubled(x: gl[f32], total: gl[f32], *, B=8):
        """x = 2 x; total = total + the sum of x"""
        i = ww.grid(cdiv(x.rows, B))
        tile = ww.load(x, (i, 0), rt[f32, B, 64])
        ww.store(x, (i, 0), tile * 2.0)
        ww.atomic_add(total, (0, 0), ww.sum(tile, axis=0, keepdims=True))

    x, total = torch.ones(1000, 64, device="cuda"), torch.ones(1, 64, device="cuda")
    doubled(x, total)
    assert bool((x == 2).all())
    assert bool((total == 1001).all())


def test_graphs(torch):
    a, b, c = operands(torch, 512)
    kernel, stream, graph = tuned_product(), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        with pytest.raises(LaunchError, match="a stream that captures a graph"):
            kernel(a, b, c)
        graph.capture_end()  # the capture is still whole
    kernel(a, b, c)
    torch.cuda.synchronize()
    c.fill_(-1)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        kernel(a, b, c)
    captured.replay()
    torch.cuda.synchronize()
    assert bool((c == a.float() @ b.float().T).all())


def test_threads_tune_on_streams_of_their_own(torch):
    kernel, problems = tuned_product(), []

    def work(size):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                a, b, c = operands(torch, size)
                kernel(a, b, c)
                torch.cuda.current_stream().synchronize()
                assert bool((c == a.float() @ b.float().T).all())
        except BaseException as error:  # handed to the main thread
            problems.append(error)

    threads = [threading.Thread(target=work, args=(size,)) for size in (256, 256, 512, 512)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_numpy_arrays_and_descriptions():
    found = tuned_product().tuning(*[ww.spec("bf16[512,512]")] * 2, ww.spec("f32[512,512]"), target="nvidia:sm90a")
    assert found.is_measured
    assert all(trial.seconds for trial in found.trials[:3])


def test_a_shared_tile_beyond_the_limit_is_refused_with_every_reason(torch):
    @ww.autotune([ww.Config(B=512), ww.Config(B=1024)])
    @ww.kernel
    def copied(x: gl[f32], y: gl[f32], *, B=64):
        i = ww.grid(cdiv(x.rows, B))
        ww.store(y, (i, 0), ww.load(x, (i, 0), st[f32, B, 256]))

    x = torch.zeros(2048, 256, device="cuda")
    with pytest.raises(ww.ResourceError, match="none of its 2 config"):
        copied(x, torch.zeros_like(x))
