"""`@ww.autotune`: the fastest configuration is used, found once, kept on disk; with a backend whose clock is made up."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

import warpwave as ww
from warpwave import cdiv, f32, gl, rt
from warpwave.tiles.errors import (
    CheckFailed,
    LaunchError,
    ResourceError,
    TileError,
    TileTypeError,
    TileValueError,
    UnsupportedError,
)
from warpwave.tiles.reference import BACKEND as REFERENCE
from warpwave.tiles.runtime import registry
from warpwave.tiles.runtime.arrays import borrow
from warpwave.tiles.runtime.backend import Measurement, Target
from warpwave.tiles.runtime.spans import duplicate
from warpwave.tiles.runtime.tuning import Tuning


class Program:
    """The reference's program, of a backend with a clock."""

    def __init__(self, kernel, options):
        self.kernel, self.options = kernel, options
        self.reference = REFERENCE.compile(kernel, "reference", {})
        self.source, self.asm, self.resources = repr((kernel.constants, options)), "", {}

    def explain(self):
        return "made up"

    def run(self, arguments):
        self.reference.run(arguments)


class Timed:
    """Launches take what `seconds` says of the constants, the options and the arguments."""

    name = "timed"

    def __init__(self, seconds, most=128):
        self.seconds, self.most, self.measured, self.version = seconds, most, [], "of tests"

    def targets(self):
        return [Target("timed", "for tests")]

    def target_for(self, device):
        return None

    def diagnose(self):
        return []

    def compile(self, kernel, target, options):
        if kernel.constants["B"] > self.most:
            raise ResourceError(f"B={kernel.constants['B']} is too large\n  a table")
        return Program(kernel, dict(options))

    def clock(self, program, arguments):
        return self.version

    def measure(self, programs, arguments):
        return [self.measured_one(program, arguments) for program in programs]

    def measured_one(self, program, arguments):
        self.measured.append(dict(program.kernel.constants) | program.options)
        try:
            return Measurement(self.seconds(program.kernel.constants, program.options, arguments), "made up")
        except TileError as error:
            return error


def make(configs, key=None):
    @ww.autotune(configs, key)
    @ww.kernel
    def doubled(x: gl[f32], y: gl[f32], *, B=8, C=1):
        i, j = ww.grid(cdiv(x.rows, B), cdiv(x.cols, B))
        ww.store(y, (i, j), ww.load(x, (i, j), rt[f32, B, B]) * 2.0)

    return doubled


SIZES = [ww.Config(B=16), ww.Config(B=32), ww.Config(B=64)]


@pytest.fixture
def use(monkeypatch, tmp_path):
    monkeypatch.setenv("WARPWAVE_CACHE", str(tmp_path))

    def install(seconds, **how):
        backend = Timed(seconds, **how)
        monkeypatch.setattr(registry, "resolve", lambda name: backend)
        return backend

    return install


def by_size(constants, options, arguments):
    return {16: 3e-6, 32: 1e-6, 64: 2e-6}[constants["B"]]


def arrays(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape), np.zeros(shape, np.float32)


def test_the_fastest_is_used_and_said(use):
    use(by_size)
    x, y = arrays(40, 70)
    kernel = make(SIZES)
    kernel(x, y, target="timed")
    np.testing.assert_array_equal(y, 2 * x)
    compiled = kernel.compile(x, y, target="timed")
    assert compiled.constants == {"B": 32, "C": 1}
    assert "B = 32 (tuned)\n" in compiled.explain()
    assert "  configurations, made up\n    B=16: 3.0 us\n  * B=32: 1.0 us\n    B=64: 2.0 us" in compiled.explain()
    assert kernel.capture(x, y, target="timed").constants["B"] == 32
    assert str(kernel.tuning(x, y, target="timed")) == "made up\n  B=16: 3.0 us\n* B=32: 1.0 us\n  B=64: 2.0 us"


def test_it_is_measured_once_for_each_shape_dtype_constant_and_option(use):
    backend, kernel = use(by_size), make(SIZES)
    for shape, constants, options in (
        ((8, 8), {}, {}),
        ((8, 8), {}, {}),
        ((8, 9), {}, {}),
        ((8, 9), {"C": 2}, {}),
        ((8, 9), {"C": 2}, {"o": 1}),
    ):
        before = len(backend.measured)
        kernel.compile(*arrays(*shape), target="timed", options=options, **constants)
        again = (shape, constants, options) == ((8, 8), {}, {}) and before
        assert len(backend.measured) - before == (0 if again else 3)


def test_a_key_names_the_tensors_whose_shapes_matter(use):
    backend, kernel = use(by_size), make(SIZES, key=["y"])
    kernel.compile(ww.spec("f32[8,8]"), ww.spec("f32[8,8]"), target="timed")
    kernel.compile(ww.spec("f32[9,8]"), ww.spec("f32[8,8]"), target="timed")
    assert len(backend.measured) == 3


def test_another_process_finds_it_on_disk(use, tmp_path):
    backend = use(by_size)
    first = make(SIZES).tuning(*arrays(8, 8), target="timed")
    assert make(SIZES).tuning(*arrays(8, 8), target="timed") == first
    assert len(backend.measured) == 3
    backend.version = "another"  # a device or a model that says other times
    make(SIZES).tuning(*arrays(8, 8), target="timed")
    assert len(backend.measured) == 6
    kept = [json.loads(path.read_text()) for path in (tmp_path / "tuned").iterdir()]
    assert all(Tuning.from_json(json.dumps(k)) == first for k in kept)


def test_what_the_call_gives_goes_first(use):
    backend, kernel = use(by_size), make([*SIZES, ww.Config(B=32, options={"o": 2}), ww.Config(B=32, C=7)])
    compiled = kernel.compile(*arrays(8, 8), target="timed", B=16, options={"o": 5})
    assert compiled.constants["B"] == 16
    assert "B = 16 (from the call)" in compiled.explain()
    assert [m["o"] for m in backend.measured] == [5, 5]  # three configurations have become one, another had only o
    assert {m["C"] for m in backend.measured} == {1, 7}


def test_options_of_a_configuration_are_passed_on(use):
    use(lambda constants, options, arguments: 1e-6 if options.get("o") == 3 else 2e-6)
    kernel = make([ww.Config(), ww.Config(options={"o": 3})])
    assert kernel.compile(*arrays(8, 8), target="timed").program.options == {"o": 3}


def test_what_does_not_fit_is_left_out_and_told(use):
    use(by_size, most=16)
    tuned = make(SIZES).tuning(*arrays(8, 8), target="timed")
    assert [trial.why for trial in tuned.trials[1:]] == [f"refused: B={b} is too large" for b in (32, 64)]
    assert tuned.best == 0


def test_if_none_can_be_built_each_says_why(use):
    use(by_size, most=8)
    with pytest.raises(ResourceError, match="doubled: none of its 3 configurations can be used for timed") as caught:
        make(SIZES).compile(*arrays(8, 8), target="timed")
    refused = [f"  B={b}: refused: B={b} is too large" for b in (16, 32, 64)]
    assert caught.value.message.splitlines()[1:] == refused


def test_what_cannot_be_launched_is_left_out_like_what_cannot_be_built(use):
    def launched(constants, options, arguments):
        if constants["B"] == 32:
            raise LaunchError("too many registers")
        return by_size(constants, options, arguments)

    backend = use(launched)
    tuned = make(SIZES).tuning(*arrays(8, 8), target="timed")
    assert (tuned.best, tuned.trials[1].why) == (2, "refused: too many registers")
    backend.seconds = lambda *_: launched({"B": 32}, {}, {})
    with pytest.raises(LaunchError, match="none of its 3 configurations can be used") as caught:
        make(SIZES).tuning(*arrays(9, 9), target="timed")
    assert str(caught.value).count("refused: too many registers") == 3


def test_descriptions_are_measured_with_zeros_if_they_are_complete(use):
    backend = use(by_size)
    kernel = make(SIZES)
    assert kernel.compile(ww.spec("f32[64,64]"), ww.spec("f32[64,64]"), target="timed").constants["B"] == 32
    before = len(backend.measured)
    compiled = kernel.compile(ww.spec("f32[?,64]"), ww.spec("f32[64,64]"), target="timed")
    assert len(backend.measured) == before
    assert compiled.constants["B"] == 16
    assert "since nothing was measured\n  * B=16: not measured: x is not known" in compiled.explain()
    assert "B = 16 (configuration, not measured)\n" in compiled.explain()


@pytest.mark.parametrize("kind", [UnsupportedError, CheckFailed])
def test_a_clock_that_cannot_tell(use, tmp_path, kind):
    """A check that fails is the launch's business: it says so by itself."""

    def no_time(*_):
        raise kind("it takes no time")

    use(no_time)
    tuned = make(SIZES).tuning(*arrays(8, 8), target="timed")
    assert (tuned.best, tuned.trials[0].why) == (0, "not measured: it takes no time")
    assert not (tmp_path / "tuned").exists()


def test_an_error_of_measuring_names_the_kernel_and_is_not_kept(use):
    backend, kernel = use(by_size), make(SIZES)
    backend.measure = lambda programs, arguments: (_ for _ in ()).throw(LaunchError("no memory"))
    with pytest.raises(LaunchError, match="kernel doubled, whose configurations are measured: no memory") as caught:
        kernel(*arrays(8, 8), target="timed")
    assert caught.value.loc is not None
    del backend.measure
    assert kernel.tuning(*arrays(8, 8), target="timed").is_measured


def test_threads_measure_once(use):
    backend, kernel = use(by_size), make(SIZES)
    ready, found = threading.Barrier(8), []

    def work():
        ready.wait()
        found.append(kernel.tuning(*arrays(8, 8), target="timed").best)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 8
    assert len(backend.measured) == 3


def test_targets_without_a_clock_take_the_first():
    x, y = arrays(8, 8)
    kernel = make(SIZES)
    kernel(x, y, target="reference")
    np.testing.assert_array_equal(y, 2 * x)
    assert "B=16: not measured: reference has no clock" in kernel.compile(x, y, target="reference").explain()


def test_a_single_configuration_is_not_measured(use):
    backend = use(by_size)
    assert make([ww.Config(B=64)]).compile(*arrays(8, 8), target="timed").constants["B"] == 64
    assert backend.measured == []


def test_mistakes():
    with pytest.raises(TileValueError, match="at least one configuration"):
        ww.autotune([])
    with pytest.raises(TileTypeError, match="autotune takes a kernel, got function"):
        ww.autotune(SIZES)(arrays)
    with pytest.raises(TileValueError, match="kernel doubled has no tensor or constant 'BM'"):
        make([ww.Config(BM=1)])
    with pytest.raises(TileValueError, match="kernel doubled has no tensor or constant 'z'"):
        make(SIZES, key=["z"])


@pytest.mark.parametrize("view", [np.s_[:, :], np.s_[::-1, 1::2], np.s_[:0, :], np.s_[3, 2:]])
def test_copies_keep_strides_and_alignment(view):
    array = np.arange(60, dtype=np.float32).reshape(6, 10)[view]
    copy = duplicate(borrow(array))
    np.testing.assert_array_equal(copy.host, array)
    assert copy.strides == borrow(array).strides
    if array.size:
        assert copy.address % 16 == borrow(array).address % 16
        assert not np.shares_memory(copy.host, array)
