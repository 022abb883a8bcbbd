"""Configurations timed by CUDA events, on a fake driver whose kernels take the time that they are told."""

from __future__ import annotations

import ctypes
import itertools
import struct
import threading

import numpy as np
import pytest
from cuda.bindings import driver as cuda

import warpwave as ww
from warpwave import f32, gl, st
from warpwave.backends.nvidia import backend
from warpwave.backends.nvidia.runtime import measuring, use_stream
from warpwave.backends.nvidia.tests.fake_cuda import FakeCuda, Gpu, Refused
from warpwave.backends.nvidia.tests.harness import checked, faked, on_gpu, unbuilt
from warpwave.tiles import disk_cache
from warpwave.tiles.errors import CheckFailed, LaunchError, ResourceError
from warpwave.tiles.runtime.trials import CACHES

TENSOR2 = 8 + 2 * 8 + 2 * 4
SIZES = [TENSOR2, TENSOR2, 16, 8]
MS = {1: 3.0, 2: 1.0, 4: 2.0}  # of a launch, by blocks


CONFIGS = (ww.Config(B=64), ww.Config(B=32), ww.Config(B=16))


def tuned(configs=CONFIGS):
    """Of 64 rows and 16 columns these are 1, 2 and 4 blocks."""

    @ww.autotune(configs)
    @ww.kernel
    def twice(x: gl[f32], y: gl[f32], *, B=8):
        """y = 2 x"""
        m = ww.grid(ww.cdiv(x.rows, B))
        ww.store(y, (m, 0), ww.load(x, (m, 0), st[f32, B, 16]) * 2.0)

    return twice


def twice(launch):
    """What one launch of the kernel does to 64 x 16 elements; as a whole, whichever block."""
    x, y = (struct.unpack_from("Q", p)[0] for p in launch.parameters[:2])
    source, target = ((ctypes.c_float * 1024).from_address(address) for address in (x, y))
    target[:] = [2 * value for value in source]


@pytest.fixture
def fake(monkeypatch, tmp_path):
    monkeypatch.setenv("WARPWAVE_CACHE", str(tmp_path))
    monkeypatch.setattr(backend, "compiled", lambda kernel, target, options: unbuilt(kernel, target, **options))
    with faked(FakeCuda(sizes=SIZES), monkeypatch) as found:
        backend._targets.cache_clear()

        def launched(launch):
            twice(launch)
            found.now += MS[launch.grid[0]]

        found.on_launch = launched
        yield found
        backend._targets.cache_clear()


def arrays(device="dlpack2:0"):
    x, y = np.arange(1024, dtype=np.float32).reshape(64, 16), np.zeros((64, 16), np.float32)
    return x, y, on_gpu(x, device), on_gpu(y, device)


def test_the_fastest_is_launched_and_told(fake):
    x, y, dx, dy = arrays()
    kernel = tuned()
    with use_stream(0x42):
        kernel(dx, dy)
    assert fake.launches[-1].grid == (2, 1, 1)
    np.testing.assert_array_equal(y, 2 * x)
    table = "configurations, measured on NVIDIA H200\n    B=64: 3000.0 us\n  * B=32: 1000.0 us\n    B=16: 2000.0 us"
    assert table in kernel.compile(dx, dy).explain()
    before = len(fake.launches)
    kernel(dx, dy)
    assert len(fake.launches) == before + 1


def test_trials_are_on_the_launchs_stream_and_write_copies_only(fake):
    _, y, dx, dy = arrays()
    with use_stream(0x42):
        tuned().compile(dx, dy)
    assert {launch.stream for launch in fake.launches} == {0x42}
    assert {args[-1] for args in fake.called("cuEventRecord")} == {0x42}
    addresses = {struct.unpack_from("Q", launch.parameters[1])[0] for launch in fake.launches}
    assert len(addresses) == 1
    assert addresses != {dy.address}
    assert not y.any()
    fills = [args[2] * 4 for args in fake.called("cuMemsetD32Async")]
    assert set(fills) == {CACHES * fake.gpus[0].l2}
    assert len(fills) == len(fake.launches) - len(CONFIGS)  # one before each run, but those that show what can run
    assert not fake.memory
    assert not fake.events


def test_a_kernel_in_place_is_run_once(fake):
    x, _, dx, _ = arrays()
    expected = 2 * x
    tuned()(dx, dx)
    np.testing.assert_array_equal(x, expected)


def test_arrays_in_host_memory_are_copied_there_before(fake):
    x, y, _, _ = arrays()
    found = tuned().tuning(x, y, target="nvidia:sm90a")
    assert (found.best, found.how) == (1, "measured on NVIDIA H200")
    assert len(fake.called("cuMemcpyHtoD")) == 0
    assert not fake.memory
    assert tuned().tuning(ww.spec("f32[64,16]"), ww.spec("f32[64,16]"), target="nvidia:sm90a") == found


def test_under_capture_nothing_is_touched(fake):
    _, _, dx, dy = arrays()
    kernel = tuned()
    fake.capturing.add(0)
    with pytest.raises(LaunchError, match="twice, whose configurations are measured: a stream that captures") as caught:
        kernel(dx, dy)
    assert "launch it once before the capture" in caught.value.hint
    assert not fake.launches
    assert not fake.called("cuStreamSynchronize")
    kernel(dx, dy, B=64)  # nothing to choose
    assert len(fake.launches) == 1
    fake.capturing.clear()
    kernel(dx, dy)
    fake.capturing.add(0)
    for known in (kernel, tuned()):  # by this process, or on disk
        before = len(fake.launches)
        known(dx, dy)
        assert [launch.grid[0] for launch in fake.launches[before:]] == [2]


def test_other_threads_may_capture_meanwhile(fake):
    _, _, dx, dy = arrays()
    modes, launched = set(), fake.on_launch

    def look(launch):
        modes.add(fake._modes.value)
        launched(launch)

    fake.on_launch = look
    tuned().compile(dx, dy)
    assert modes == {cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED}
    assert fake._modes.value == cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL


def test_each_kind_of_device_has_its_own(fake):
    fake.gpus[:] = [Gpu(), Gpu(name="NVIDIA H100"), Gpu()]
    kernel, counts = tuned(), []
    for device in ("dlpack2:0", "dlpack2:1", "dlpack2:2"):
        before = len(fake.launches)
        assert kernel.tuning(*arrays(device)[2:]).best == 1
        counts.append(len(fake.launches) - before)
    assert counts[0] == counts[1] > 0 == counts[2]  # the third is like the first, which is on disk


def test_without_a_device_the_first_is_taken(fake):
    fake.gpus[:] = [Gpu((8, 9), "NVIDIA L4")]
    found = tuned().tuning(ww.spec("f32[64,16]"), ww.spec("f32[64,16]"), target="nvidia:sm90a")
    assert found.best == 0
    assert "not measured: kernel twice is built for nvidia:sm90a, which no device here can run" in str(found)


def test_what_the_device_refuses_is_left_out(fake):
    """By the shared memory that a launch asks for, and by the driver's word."""
    configs = [ww.Config(B=32, options={"shared_bytes": 1 << 20}), ww.Config(B=64), ww.Config(B=16)]
    _, _, dx, dy = arrays()
    found = tuned(configs).tuning(dx, dy)
    assert found.best == 2
    assert found.trials[0].why.startswith("refused: kernel twice uses 1048576 bytes of shared memory a block, device 0")
    configs = [ww.Config(B=b, options={"shared_bytes": 1 << 20}) for b in (16, 32)]
    with pytest.raises(ResourceError, match="none of its 2 configurations can be used for nvidia:sm90a") as caught:
        tuned(configs)(dx, dy)
    assert str(caught.value).count("refused: kernel twice uses 1048576 bytes") == 2


def test_a_launch_that_the_driver_refuses_is_left_out(fake, monkeypatch):
    _, _, dx, dy = arrays()
    start, refused = FakeCuda.do_cuLaunchKernel, Refused(cuda.CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)

    def launch(self, function, blocks, *others):
        return refused if blocks == 2 else start(self, function, blocks, *others)

    monkeypatch.setattr(FakeCuda, "do_cuLaunchKernel", launch)
    monkeypatch.setattr(FakeCuda, "do_cuGetErrorName", lambda self, code: code.name.encode(), raising=False)
    monkeypatch.setattr(FakeCuda, "do_cuGetErrorString", lambda self, code: b"too many resources", raising=False)
    found = tuned().tuning(dx, dy)
    assert (found.best, found.trials[1].seconds) == (2, None)
    assert "refused: kernel twice for nvidia:sm90a on device 0" in found.trials[1].why
    assert "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" in found.trials[1].why


def test_a_failed_check_leaves_a_configuration_out(fake):
    fake.sizes = [TENSOR2, TENSOR2, 4, 8, 1, 16, 8]
    x = np.zeros((64, 32), np.float32)
    arguments = {"x": on_gpu(x), "y": on_gpu(x), "limit": 1.0, "seed": 2, "flag": True}
    compile_ = checked.compile
    programs = [unbuilt(compile_(x, x, 1.0, 2, True, target="reference", B=b).ir) for b in (64, 32)]

    def launched(launch):
        (status,) = struct.unpack("Q", launch.parameters[-1])
        if launch.grid[0] == 2:
            ctypes.c_int.from_address(status).value = 1
        fake.now += 1.0

    fake.on_launch = launched
    good, failed = measuring.measure(programs, arguments)
    assert good.seconds == 1e-3
    assert isinstance(failed, CheckFailed)
    assert "too many rows" in failed.message
    assert not fake.memory


def test_a_launch_of_nothing_has_no_time(fake):
    empty = on_gpu(np.zeros((0, 16), np.float32))
    found = tuned().tuning(empty, empty)
    assert {trial.why for trial in found.trials} == {"not measured: a launch of no blocks takes no time"}


def test_one_kernel_at_a_time_is_measured_on_a_device(fake):
    _, _, dx, dy = arrays()
    order, launched, ready = [], fake.on_launch, threading.Barrier(4)

    def noted(launch):
        order.append(threading.get_ident())
        launched(launch)

    fake.on_launch = noted

    def work():
        kernel = tuned()
        ready.wait()
        with disk_cache.bypassed():  # which would tell the others
            kernel.compile(dx, dy)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    changes = sum(a != b for a, b in itertools.pairwise(order))
    assert changes == 3
