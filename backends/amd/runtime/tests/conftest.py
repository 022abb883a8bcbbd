"""A process whose HIP is the simulator's, and in which the AMD backend sees its device."""

from __future__ import annotations

import pytest

from warpwave.backends.amd import backend, sim
from warpwave.backends.amd.runtime import devices


@pytest.fixture
def hip(monkeypatch):
    """hip-python on one simulated gfx950, which launches find."""
    sim.hip_runtime("gfx950")
    from hip import hip

    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    _look_again()
    yield hip
    hip.hipDeviceSynchronize()
    hip.hipGetLastError()
    _look_again()


_cached = devices.devices, backend._targets  # tests replace the names


def _look_again():
    for function in _cached:
        function.cache_clear()
