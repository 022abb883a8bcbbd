"""Launches that take an earlier one's route do the same as a launch that is looked at closely."""

from __future__ import annotations

import math
import sys
import types

import numpy as np
import pytest

import warpwave as ww
from warpwave import f32, gl, i32, st
from warpwave.tiles.errors import TileTypeError, TileValueError
from warpwave.tiles.runtime import kernel as runtime_kernel
from warpwave.tiles.runtime import registry
from warpwave.tiles.runtime.arrays import Array, borrow
from warpwave.tiles.runtime.backend import Target

WIDTH = 8


@pytest.fixture
def backend(monkeypatch):
    """A backend for arrays of device type 99, which records what its programs are given."""
    runs = []

    class Program:
        def __init__(self, kernel):
            self.kernel = kernel

        def run(self, arguments):
            runs.append((self.kernel, arguments))

    class Recorder:
        name = "recorder"

        def targets(self):
            return [Target("recorder:a", ""), Target("recorder:b", "")]

        def target_for(self, device):
            return "recorder:a" if device.startswith("dlpack99") else None

        def diagnose(self):
            return []

        def compile(self, kernel, target, options):
            return Program(kernel)

    recorder = Recorder()
    recorder.runs = runs
    plugins = {"recorder": registry.Plugin("recorder", "a test", recorder)}
    monkeypatch.setattr(registry, "_load", lambda: plugins)
    return recorder


@pytest.fixture
def binds(monkeypatch):
    """Counts the launches that were bound, which is what the quick route leaves out."""
    count = []
    real = runtime_kernel.Kernel._bind
    monkeypatch.setattr(runtime_kernel.Kernel, "_bind", lambda *a: (count.append(1), real(*a))[1])
    return count


def make():
    @ww.kernel
    def scale(x: gl[f32], y: gl[f32], factor: f32, shift: i32 = 0, *, B=WIDTH, flag=False):
        m, n = ww.grid(ww.cdiv(x.rows, B), ww.cdiv(x.cols, B))
        ww.store(y, (m, n), ww.load(x, (m, n), st[f32, B, B]) * (factor if not flag else WIDTH))

    return scale


class Tensor:
    """What the runtime uses of a PyTorch tensor."""

    def __init__(self, array, device="x:0", requires_grad=False):
        self.array, self.device, self.requires_grad = array, device, requires_grad
        self.dtype, self.shape = str(array.dtype), array.shape

    def stride(self):
        return tuple(s // self.array.itemsize for s in self.array.strides)

    def data_ptr(self):
        return self.array.ctypes.data


Tensor.__module__ = "torch"


@pytest.fixture
def tensors(monkeypatch):
    """Makes tensors, whose views come from `borrow` as if through DLPack."""
    real = borrow

    def import_tensor(obj):
        if not isinstance(obj, Tensor):
            return real(obj)
        if obj.requires_grad:
            raise TileTypeError("pass tensor.detach()")
        host = real(obj.array)
        return Array(host.dtype, host.shape, host.strides, "dlpack99:0", host.address, ("capsule", obj))

    Tensor.__dlpack__ = Tensor.__dlpack_device__ = None
    monkeypatch.setattr("warpwave.tiles.runtime.binding.borrow", import_tensor)
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    return lambda shape=(16, 16), **how: Tensor(np.zeros(shape, np.float32), **how)


def same_view(found, tensor):
    assert type(found) is Array
    assert found == Array(f32, tensor.shape, tensor.stride(), "dlpack99:0", tensor.data_ptr(), found.owner, None, True)
    assert found.owner is tensor or found.owner[1] is tensor


def test_a_second_launch_is_not_bound_again(backend, binds, tensors):
    scale = make()
    for factor in (2.0, 2.0, 2.0):
        x, y = tensors(), tensors()
        scale(x, y, factor)
        _, arguments = backend.runs[-1]
        assert list(arguments) == ["x", "y", "factor", "shift"]
        same_view(arguments["x"], x)
        same_view(arguments["y"], y)
        assert (arguments["factor"], arguments["shift"]) == (2.0, 0)
    assert len(binds) == 1
    assert len({id(kernel) for kernel, _ in backend.runs}) == 1


def test_arguments_by_name_take_the_route_too(backend, binds, tensors):
    scale = make()
    for _ in range(2):
        x, y = tensors(), tensors()
        scale(x, factor=3.0, y=y)
        same_view(backend.runs[-1][1]["y"], y)
        same_view(backend.runs[-1][1]["x"], x)
    assert len(binds) == 1


@pytest.mark.parametrize(
    "launch",
    [
        lambda scale, t: scale(t((8, 16)), t((8, 16)), 2.0),
        lambda scale, t: scale(t(), t(), 2.0, B=4),
        lambda scale, t: scale(t(), t(), 2.0, flag=True),
        lambda scale, t: scale(t(), t(), 2),
        lambda scale, t: scale(t(), t(), 2.0, target="recorder:b"),
        lambda scale, t: scale(t(device="x:1"), t(device="x:1"), 2.0),
    ],
    ids=["shape", "constant", "flag", "kind of number", "target", "device"],
)
def test_what_makes_a_difference_is_looked_at(backend, binds, tensors, launch):
    scale = make()
    scale(tensors(), tensors(), 2.0)
    launch(scale, tensors)
    assert len(binds) == 2


def test_numbers_are_read_anew(backend, binds, tensors):
    scale = make()
    for factor, shift in ((0.0, 1), (-0.0, 2), (0.1, -3), (math.inf, 4)):
        scale(tensors(), tensors(), factor, shift=shift)
    assert len(binds) == 1
    assert [np.signbit(a["factor"]) for _, a in backend.runs] == [False, True, False, False]
    assert [a["factor"] for _, a in backend.runs] == [0.0, 0.0, float(np.float32(0.1)), math.inf]
    assert [a["shift"] for _, a in backend.runs] == [1, 2, -3, 4]


@pytest.mark.parametrize(("factor", "shift"), [(1e300, 0), (1.0, 2**31)])
def test_a_number_that_does_not_fit_is_explained(backend, tensors, factor, shift):
    scale = make()
    scale(tensors(), tensors(), 1.0, 0)
    with pytest.raises(TileValueError, match=r"kernel scale: argument '(factor|shift)': .* does not fit"):
        scale(tensors(), tensors(), factor, shift)
    assert len(backend.runs) == 1


def test_a_number_that_a_constant_depends_on_is_looked_at(backend, binds, tensors):
    width = ww.derived(lambda n: 8 * n)

    @ww.kernel
    def shifted(x: gl[f32], y: gl[f32], n: i32, *, B=width):
        i, j = ww.grid(ww.cdiv(x.rows, B), ww.cdiv(x.cols, B))
        ww.store(y, (i, j), ww.load(x, (i, j), st[f32, B, B]))

    for n in (1, 2, 1, 2):
        shifted(tensors(), tensors(), n)
    kernels = [kernel for kernel, _ in backend.runs]
    assert [kernel.constants["B"] for kernel in kernels] == [8, 16, 8, 16]
    assert len(binds) == 2


def test_tuned_constants_do_not_see_numbers(backend, tensors, monkeypatch):
    seen = []
    monkeypatch.setattr(
        type(backend), "constants_for", lambda self, *a: (seen.append(list(a[2])), {})[1], raising=False
    )
    make()(tensors(), tensors(), 1.0, 5)
    assert seen == [["x", "y"]]


def test_true_is_not_one(backend, tensors):
    scale = make()
    scale(tensors(), tensors(), 2.0, 1)
    with pytest.raises(TileTypeError, match="expected a number of i32, got bool True"):
        scale(tensors(), tensors(), 2.0, True)


def test_a_changed_global_is_seen(backend, tensors, monkeypatch):
    scale = make()
    for _ in range(2):
        scale(tensors(), tensors(), 2.0, flag=True)
    monkeypatch.setitem(globals(), "WIDTH", 9)
    scale(tensors(), tensors(), 2.0, flag=True)
    first, second, third = (kernel for kernel, _ in backend.runs)
    assert first is second
    assert "9" in str(third)
    assert str(third) != str(first)


def test_gradients_are_refused_each_time(backend, tensors):
    scale = make()
    scale(tensors(), tensors(), 2.0)
    for _ in range(2):
        with pytest.raises(TileTypeError, match="detach"):
            scale(tensors(requires_grad=True), tensors(), 2.0)


def test_a_launch_that_fails_leaves_no_route(backend, binds, tensors):
    scale = make()
    for _ in range(2):
        with pytest.raises(TileValueError):
            scale(tensors(), tensors(), 1e300)
    assert len(binds) == 2


def test_arrays_in_host_memory_take_no_route():
    x, y = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    scale = make()
    for factor in (2.0, 2.0):
        scale(x, y, factor, target="reference")
    np.testing.assert_array_equal(y, 2 * x)
    assert not scale._routes._routes


def test_options_are_looked_at(backend, binds, tensors):
    scale = make()
    for options in ({"level": 3}, {"level": 3}, {"level": 4}, {"level": 3.0}, None, {}, {"level": [3]}, {"level": [3]}):
        scale(tensors(), tensors(), 2.0, options=options)
    assert len(binds) == 6  # the last two are described by nothing that can be kept


def test_routes_are_forgotten_rather_than_grow(backend, tensors, monkeypatch):
    monkeypatch.setattr("warpwave.tiles.runtime.quick.REMEMBERED", 4)
    scale = make()
    for rows in range(1, 20):
        scale(tensors((rows, 16)), tensors((rows, 16)), 1.0)
    assert len(scale._routes._routes) <= 4


class Shortcut:
    """A program's shorter way, which takes some addresses and numbers."""

    def __init__(self, takes):
        self.takes, self.calls = takes, []

    def __call__(self, addresses, numbers):
        self.calls.append((list(addresses), list(numbers)))
        return self.takes


@pytest.mark.parametrize("takes", [True, False])
def test_a_programs_shorter_way_is_taken(backend, tensors, monkeypatch, takes):
    shortcut = Shortcut(takes)
    compile_ = type(backend).compile

    def compile_with_shortcut(self, *args):
        program = compile_(self, *args)
        program.again = lambda arguments: shortcut
        return program

    monkeypatch.setattr(type(backend), "compile", compile_with_shortcut)
    scale = make()
    scale(tensors(), tensors(), 1.0)
    x, y = tensors(), tensors()
    scale(x, factor=2.5, y=y)
    assert not shortcut.calls  # other names of arguments are another route
    scale(x, factor=3.5, y=y)
    assert shortcut.calls == [([x.data_ptr(), y.data_ptr()], [3.5, 0])]
    assert len(backend.runs) == (2 if takes else 3)
    if not takes:
        _, arguments = backend.runs[-1]
        same_view(arguments["y"], y)
        assert arguments["factor"] == 3.5


def test_arrays_of_other_libraries_have_no_shorter_way(backend, tensors, monkeypatch):
    compile_ = type(backend).compile
    asked = []

    def compile_with_shortcut(self, *args):
        program = compile_(self, *args)
        program.again = asked.append
        return program

    monkeypatch.setattr(type(backend), "compile", compile_with_shortcut)
    host = borrow(np.zeros((16, 16), np.float32))
    view = Array(host.dtype, host.shape, host.strides, "dlpack99:0", host.address, host)
    scale = make()
    for _ in range(2):
        scale(view, view, 1.0)
    assert not asked
    assert backend.runs[-1][1]["x"] is view
