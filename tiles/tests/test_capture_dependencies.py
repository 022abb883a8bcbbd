"""What a kernel took from outside: a change makes it stale, capture itself changes nothing, threads do not mix."""

from __future__ import annotations

import functools
import threading
import types
from unittest import mock

import numpy as np
import pytest

import warpwave as ww
from warpwave.tiles.capture import capture
from warpwave.tiles.dtypes import f32, i32
from warpwave.tiles.errors import CaptureError, TileError
from warpwave.tiles.ir import print_kernel
from warpwave.tiles.language import context
from warpwave.tiles.tests.programs import captured
from warpwave.tiles.types import TensorType, scalar

NUMBER = 3
ZERO = 0.0
FLAGS = {"deep": [1, [2, 3]]}
ARRAY = np.array([1, 2, 3])
MODULE = types.ModuleType("settings")
MODULE.width = 4
UNRELATED = 1


class Config:
    def __init__(self):
        self.width = 4
        self.names = ["p"]

    @property
    def twice(self):
        return self.width * 2

    def scaled(self, v):
        return v * self.width


CONFIG = Config()


def helper(v, by=2, *, also=3):
    return inner(v) * by + also


def inner(v):
    return v + NUMBER


def other(v):
    return v - NUMBER


def other_helper(v, by=2, *, also=3):
    return v


TABLE = {"f": lambda v: v + 1}


@functools.cache
def cached(v):
    return v * NUMBER


def reads_everything(n, out):
    ww.store(out, 0, n + NUMBER + ZERO)
    ww.store(out, 1, FLAGS["deep"][1][0] + int(ARRAY[1]))
    ww.store(out, 2, MODULE.width + CONFIG.width + CONFIG.twice)
    ww.store(out, 3, CONFIG.scaled(n) + getattr(CONFIG, "width"))  # noqa: B009
    ww.store(out, 4, helper(n) + TABLE["f"](n))
    ww.store(out, 5, len(CONFIG.names) + cached(2))


def set_attribute(owner, name, value):
    def change(monkeypatch):
        monkeypatch.setattr(owner, name, value, raising=False)

    change.__name__ = name
    return change


def set_item(owner, index, value):
    def change(monkeypatch):
        del monkeypatch
        old = owner[index]
        owner[index] = value
        return lambda: owner.__setitem__(index, old)

    change.__name__ = f"item_{index}"
    return change


def set_global(name, value):
    def change(monkeypatch):
        monkeypatch.setitem(globals(), name, value)

    change.__name__ = name
    return change


def delete_global(monkeypatch):
    monkeypatch.delitem(globals(), "NUMBER")


def raising_property(monkeypatch):
    monkeypatch.setattr(Config, "twice", property(lambda self: 1 // 0))


CHANGES = [
    set_global("NUMBER", 4),
    set_global("NUMBER", 3.0),
    set_global("ZERO", -0.0),
    set_global("ZERO", 0),
    set_item(FLAGS["deep"][1], 0, 7),
    set_item(FLAGS["deep"], 0, True),
    set_item(ARRAY, 1, 9),
    set_attribute(MODULE, "width", 5),
    set_attribute(CONFIG, "width", 5),
    set_attribute(CONFIG, "names", ["q"]),
    set_item(CONFIG.names, 0, "q"),
    set_attribute(Config, "scaled", lambda self, v: v),
    set_attribute(CONFIG, "scaled", other),
    raising_property,
    set_global("helper", other_helper),
    set_attribute(helper, "__defaults__", (5,)),
    set_attribute(helper, "__kwdefaults__", {"also": 4}),
    set_attribute(helper, "__code__", other_helper.__code__),
    set_attribute(inner, "__code__", other.__code__),
    set_global("inner", other),
    set_global("inner", mock.ANY),  # equal to everything
    set_global("len", other),  # hides what was the built-in
    set_item(TABLE, "f", lambda v: v),
    delete_global,
]


@pytest.mark.parametrize("change", CHANGES, ids=[f"{i}-{c.__name__}" for i, c in enumerate(CHANGES)])
def test_a_change_makes_the_kernel_stale(change, monkeypatch):
    kernel = captured(reads_everything)
    assert kernel.up_to_date()
    undo = change(monkeypatch)
    assert not kernel.up_to_date()
    if undo:
        undo()
    monkeypatch.undo()
    assert kernel.up_to_date()


def test_equal_values_and_unrelated_changes_keep_it(monkeypatch):
    kernel = captured(reads_everything)
    monkeypatch.setitem(globals(), "FLAGS", {"deep": [1, [2, 3]]})
    monkeypatch.setitem(globals(), "ARRAY", np.array([1, 2, 3]))
    monkeypatch.setitem(globals(), "UNRELATED", 2)
    assert kernel.up_to_date()


def test_nan_equals_itself(monkeypatch):
    monkeypatch.setitem(globals(), "ZERO", float("nan"))
    assert captured(reads_everything).up_to_date()


def test_closure_variable():
    width = 4

    def program(n, out):
        ww.store(out, 0, n * width)

    kernel = captured(program)
    assert kernel.up_to_date()
    width = 5
    assert not kernel.up_to_date()


def test_a_new_object_at_an_old_address_is_a_change(monkeypatch):
    monkeypatch.setitem(globals(), "CONFIG", Config())
    kernel = captured(reads_everything)
    for _ in range(50):
        monkeypatch.setitem(globals(), "CONFIG", Config())
        assert not kernel.up_to_date()


def test_a_constant_is_not_changed():
    def program(n, out, *, sizes):
        sizes.append(3)
        ww.store(out, 0, n)

    with pytest.raises(CaptureError, match="'sizes' lives outside the kernel"):
        captured(program, sizes=[1, 2])


def test_a_failed_capture_leaves_nothing_behind():
    def program(n, out):
        for i in range(n):
            if i > 1:
                ww.store(out, undefined, i)  # noqa: F821

    for _ in range(2):
        with pytest.raises(CaptureError, match="undefined"):
            captured(program)
        assert not context.is_capturing()
    assert captured(reads_everything).up_to_date()
    with pytest.raises(TileError, match="outside a kernel"):
        ww.zeros(ww.rt[f32, 4, 4])


def test_recaptured_after_an_edit_of_the_file(tmp_path):
    def load(version):
        text = f"import warpwave as ww\n{'#' * version}\ndef program(n, out):\n    ww.store(out, 0, n * {version})\n"
        path = tmp_path / "edited.py"
        path.write_text(text)
        namespace = {"__name__": "edited"}
        exec(compile(text, str(path), "exec"), namespace)
        return namespace["program"]

    for version in (2, 30):
        assert f"constant {version} : i32" in print_kernel(captured(load(version)).kernel)


def test_threads_capture_at_the_same_time():
    options = {f"k{i}": i for i in range(200)}

    def program(n, out):
        local = options
        for i in range(n):
            if i > local["k3"]:
                ww.store(out, i, local["k150"])

    texts, errors = [], []

    def work():
        try:
            for _ in range(5):
                texts.append(print_kernel(captured(program).kernel))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(texts) == 30
    assert len(set(texts)) == 1


def test_parameters_may_be_absent():
    def program(n, out, bias=None):
        ww.store(out, 0, n if bias is None else ww.load(bias, 0))

    types_ = {"n": scalar(i32), "out": TensorType(i32, 1), "bias": None}
    assert "load" not in print_kernel(capture(program, types_, {}).kernel)
    assert "load" in print_kernel(capture(program, {**types_, "bias": TensorType(i32, 1)}, {}).kernel)


def test_a_kernel_of_endless_size_is_refused(monkeypatch):
    monkeypatch.setattr("warpwave.tiles.ir.builder.MAX_OPS", 500)

    def program(n, out):
        for k in range(1000):
            ww.store(out, k, n)

    with pytest.raises(TileError, match="more than 500 ops"):
        captured(program)


def test_a_variable_of_the_real_closure_is_not_rebound():
    count = 0

    def program(n, out):
        nonlocal count
        count = count + 1

    with pytest.raises(CaptureError, match="cannot rebind 'count'"):
        captured(program)
    assert count == 0
