"""Candidates timed on a device that is made up: its memory is the host's, its clock counts what is enqueued."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pytest

from warpwave.tiles.errors import CheckFailed, LaunchError, ResourceError
from warpwave.tiles.runtime.arrays import borrow
from warpwave.tiles.runtime.backend import Measurement
from warpwave.tiles.runtime.trials import CACHES, Attempt, race, stand_ins


class Device:
    """In-order, and done at once; times are sums of powers of two, so that no clock rounds."""

    place, cache_bytes = "made up:0", 1 << 10

    def __init__(self):
        self.now, self.memory, self.fills, self.copies = 0.0, {}, [], []
        self.fault = None

    def allocate(self, nbytes):
        memory = (ctypes.c_char * nbytes)()
        self.memory[ctypes.addressof(memory)] = memory
        return ctypes.addressof(memory)

    def free(self, address):
        del self.memory[address]

    def copy(self, target, source, nbytes):
        ctypes.memmove(target, source, nbytes)
        self.copies.append(nbytes)
        self.now += 1 / 64

    def fill(self, address, nbytes):
        ctypes.memset(address, 0, nbytes)
        self.fills.append(nbytes)
        self.now += 1 / 16

    def mark(self):
        return self.now

    def wait(self):
        if self.fault:
            raise self.fault

    def milliseconds(self, start, end):
        return end - start


def on_device(array):
    return replace(borrow(array), device="made up:0", host=None)


def seen(array):
    """What lies at an argument's address."""
    count = array.shape[0] * array.strides[0]
    memory = (ctypes.c_float * count).from_address(array.address)
    return np.ndarray(array.shape, np.float32, memory, 0, tuple(4 * s for s in array.strides))


def numbers(count=64):
    return np.arange(count, dtype=np.float32)


def test_outputs_are_copies_and_inputs_are_not():
    device, x, y = Device(), numbers(), -numbers()
    given = {"x": on_device(x), "y": on_device(y), "n": 3}
    with stand_ins(given, ["y"], device) as found:
        assert found.arguments["x"] == given["x"]
        assert found.arguments["n"] == 3
        own = found.arguments["y"]
        np.testing.assert_array_equal(seen(own), y)
        assert own.address % 256 == given["y"].address % 256
        seen(own)[:] = 7
        np.testing.assert_array_equal(y, -numbers())
        found.restore(device)
        np.testing.assert_array_equal(seen(own), y)
        assert device.copies == [256, 256]
    assert not device.memory


def test_an_array_that_is_read_and_written_stays_one_array():
    device, base = Device(), numbers()
    given = {
        "x": on_device(base),
        "same": on_device(base),
        "part": on_device(base[8:24:2]),
        "other": on_device(numbers()),
    }
    with stand_ins(given, ["part"], device) as found:
        x, same, part, other = (found.arguments[name] for name in given)
        assert x.address == same.address != base.ctypes.data
        assert part.address == x.address + 32
        assert (part.shape, part.strides) == ((8,), (2,))
        assert other == given["other"]


def test_arrays_in_host_memory_go_to_the_device_once():
    device, x, y = Device(), numbers(), -numbers()
    with stand_ins({"x": borrow(x), "y": borrow(y), "none": borrow(numbers(0))}, ["y"], device) as found:
        assert [a.device for a in found.arguments.values()] == ["made up:0"] * 3
        np.testing.assert_array_equal(seen(found.arguments["x"]), x)
        seen(found.arguments["y"])[:] = 7
        y[:] = 9  # the host's memory is not read again
        found.restore(device)
        np.testing.assert_array_equal(seen(found.arguments["y"]), -numbers())
    assert not device.memory


def work(device, ms, before=lambda: None, report=lambda: None):
    def start():
        before()
        device.now += ms

    return lambda: Attempt(start, report)


def test_runs_are_timed_in_turn_from_the_same_state():
    device, y, begun = Device(), numbers(), []
    with stand_ins({"y": on_device(y)}, ["y"], device) as found:
        own = seen(found.arguments["y"])

        def double():
            begun.append(own.copy())
            own[:] *= 2

        first, second = race([work(device, 1.0, double), work(device, 2.0, double)], found, device, "made up")
    assert (first, second) == (Measurement(1e-3, "made up"), Measurement(2e-3, "made up"))
    assert len(begun) > 2 * (1 + 3 + 9)  # a run to see that it can, the warm-up, the fewest that are timed
    assert all((values == numbers()).all() for values in begun)
    assert set(device.fills) == {CACHES << 10}
    assert len(device.fills) == len(begun) - 2  # not before the first runs
    assert not device.memory


def test_what_cannot_run_is_told_and_the_others_are_timed():
    device = Device()

    def too_large():
        raise ResourceError("too much shared memory")

    def refused():
        raise LaunchError("out of registers")

    def fails():
        raise CheckFailed("not a multiple")

    with stand_ins({}, [], device) as found:
        makers = [too_large, work(device, 1.0, refused), work(device, 1.0, report=fails), work(device, 3.0)]
        *errors, last = race(makers, found, device, "made up")
    assert [str(error) for error in errors] == ["too much shared memory", "out of registers", "not a multiple"]
    assert last.seconds == 3e-3
    with stand_ins({}, [], device) as found:
        assert [str(error) for error in race([too_large] * 2, found, device, "")] == ["too much shared memory"] * 2


def test_after_a_fault_nothing_is_chosen():
    device = Device()

    def fault():
        device.fault = LaunchError("illegal address")

    with stand_ins({}, [], device) as found, pytest.raises(LaunchError, match="illegal address"):
        race([work(device, 1.0), work(device, 1.0, fault)], found, device, "made up")


def test_no_memory_for_copies(monkeypatch):
    device = Device()
    y = on_device(numbers(1 << 20))
    monkeypatch.setattr(device, "allocate", lambda nbytes: (_ for _ in ()).throw(LaunchError("out of memory")))
    with (
        pytest.raises(LaunchError, match="out of memory: 4 MiB to measure with") as caught,
        stand_ins({"y": y}, "y", device),
    ):
        pass
    assert "name the constants in the call" in caught.value.hint
