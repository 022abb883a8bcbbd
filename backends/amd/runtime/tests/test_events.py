"""Launches timed by HIP events, on the simulator's HIP: there the times say nothing, but all else is as on a GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import warpwave as ww
from warpwave.backends.amd.runtime import devices, measuring, use_stream
from warpwave.backends.amd.runtime import hip as runtime_hip
from warpwave.backends.amd.runtime.tests.device_arrays import on_device
from warpwave.backends.amd.runtime.tests.kernels import below, doubled
from warpwave.tiles.errors import CheckFailed, LaunchError
from warpwave.tiles.runtime.arrays import borrow


def programs(kernel, *arguments, sizes=(32, 16)):
    """For blocks of two sizes, with a cache that takes no time to fill."""
    built = [kernel.compile(*arguments, B=b).program for b in sizes]
    return [replace(p, target=replace(p.target, infinity_cache_bytes=1 << 12)) for p in built]


def measured(built, arguments):
    (device,) = devices.devices()
    return measuring.measure(built, device, arguments)


def test_events_enclose_runs_on_copies(hip, monkeypatch):
    x = on_device(hip, np.arange(64, dtype=np.float32).reshape(8, 8))
    built = programs(doubled, x)
    _, stream = hip.hipStreamCreate()
    events, streams = [], set()
    create, record = hip.hipEventCreate, hip.hipEventRecord

    def created():
        code, event = create()
        events.append(event)
        return code, event

    monkeypatch.setattr(hip, "hipEventCreate", created)
    monkeypatch.setattr(hip, "hipEventRecord", lambda event, on: (streams.add(on), record(event, on))[1])
    with use_stream(stream):
        found = measured(built, {"x": borrow(x)})
    (device,) = devices.devices()
    assert [m.how for m in found] == [f"measured on {device.name}"] * 2
    assert all(m.seconds > 0 for m in found)
    assert len(events) >= 2 * 9 * 2
    assert streams == {int(stream)}
    np.testing.assert_array_equal(x.numpy(), np.arange(64).reshape(8, 8))


def test_arrays_in_host_memory(hip):
    x = np.ones((8, 8), np.float32)
    device_x = on_device(hip, x)
    (found,) = measured(programs(doubled, device_x, sizes=(16,)), {"x": borrow(x)})
    assert found.seconds > 0
    assert (x == 1).all()


def test_a_failed_check_is_told(hip):
    x = on_device(hip, np.ones((8, 8), np.float32))
    good, bad = (
        measured(programs(below, x, 0.0, sizes=(8,)), {"x": borrow(x), "limit": limit})[0] for limit in (2.0, 1.0)
    )
    assert good.seconds > 0
    assert isinstance(bad, CheckFailed)
    assert "x is too large" in bad.message


def test_a_stream_that_captures_is_left_alone(hip, monkeypatch):
    x = on_device(hip, np.ones((8, 8), np.float32))
    built, status = programs(doubled, x), hip.hipStreamCaptureStatus
    now = [status.hipStreamCaptureStatusNone]
    monkeypatch.setattr(runtime_hip, "is_simulated", lambda: False)
    monkeypatch.setattr(hip, "hipStreamIsCapturing", lambda stream: (hip.hipError_t.hipSuccess, now[0]))
    assert measured(built, {"x": borrow(x)})[0].seconds > 0
    now[0] = status.hipStreamCaptureStatusActive
    monkeypatch.setattr(hip, "hipMalloc", None)
    with pytest.raises(LaunchError, match="a stream that captures a graph"):
        measured(built, {"x": borrow(x)})


def test_a_simulated_device_has_no_times(hip):
    @ww.autotune([ww.Config(B=16), ww.Config(B=32)])
    @ww.kernel
    def tripled(x: ww.gl[ww.f32], *, B=8):
        i, j = ww.grid(ww.cdiv(x.rows, B), ww.cdiv(x.cols, B))
        ww.store(x, (i, j), ww.load(x, (i, j), ww.rt[ww.f32, B, B]) * 3.0)

    x = on_device(hip, np.ones((8, 8), np.float32))
    tripled(x)
    assert (x.numpy() == 3).all()
    assert "not measured: this HIP is the simulator's" in str(tripled.tuning(x))
