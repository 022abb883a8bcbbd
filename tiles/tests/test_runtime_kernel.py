"""Kernels as callables, against a backend that records what it is asked for."""

from __future__ import annotations

import re
import threading
import time

import numpy as np
import pytest

import warpwave as ww
from warpwave import bf16, bool_, f32, gl, i32, i64, rt
from warpwave.tiles.errors import CaptureError, LaunchError, TileTypeError, TileValueError
from warpwave.tiles.runtime import registry
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.runtime.backend import Suggestion, Target
from warpwave.tiles.runtime.cache import OnceCache
from warpwave.tiles.runtime.compiled import Compiled


class RecordedProgram:
    source, asm, resources = "source text", "asm text", {"registers": 3}

    def __init__(self):
        self.runs = []

    def explain(self):
        return "  nothing to choose"

    def run(self, arguments):
        self.runs.append(arguments)


class Recorder:
    name = "rec"

    def __init__(self):
        self.compiled, self.tuned, self.delay = [], {}, 0

    def targets(self):
        return [Target("rec", "records", "recorder"), Target("rec:other", "records too", "recorder")]

    def target_for(self, device):
        return "rec" if device == "cpu:0" else None

    def diagnose(self):
        return []

    def compile(self, kernel, target, options):
        time.sleep(self.delay)
        self.compiled.append((kernel, target, dict(options)))
        return RecordedProgram()

    def constants_for(self, kernel, target, arguments):
        return self.tuned


@pytest.fixture
def backend(monkeypatch):
    recorder = Recorder()
    monkeypatch.setattr(double, "_cache", OnceCache(Compiled.up_to_date))
    monkeypatch.setattr(registry, "_load", lambda: {"rec": registry.Plugin("rec", "tests", recorder)})
    return recorder


SCALE = 2.0


def scaled(tile):
    return tile * SCALE


@ww.kernel
def double(a: gl, c: gl[f32], bias: gl | None = None, alpha: float = 1.0, *, B=16, flavour="plain"):
    """c = 2 a"""
    m, n = ww.grid(ww.cdiv(c.rows, B), ww.cdiv(c.cols, B))
    tile = ww.load(a, (m, n), rt[f32, B, B])
    ww.store(c, (m, n), scaled(tile) * alpha)


def arrays(*dtypes, shape=(4, 6)):
    return [np.zeros(shape, d) for d in dtypes]


# -- signatures ---------------------------------------------------------------------------------------


def test_a_kernel_keeps_its_name_and_documentation():
    assert (double.__name__, double.__doc__, double.name) == ("double", "c = 2 a", "double")


def test_all_kinds_of_parameters():
    def make(dtype):
        @ww.kernel
        def k(
            a: gl[dtype],
            b: gl,
            c: gl[bf16] | None,
            d: i32,
            e: int,
            f: float,
            g: bool,
            h: i64,
            i: bool_,
            *,
            N,
            M: int = 2,
        ):
            pass

        return k.signature

    signature = make(f32)
    assert [str(p) for p in signature.params] == [
        "gl[f32]", "gl", "gl[bf16] | None", "i32", "i32", "f32", "bool", "i64", "bool",
    ]  # fmt: skip
    assert list(signature.constants) == ["N", "M"]
    assert signature.constants["M"] == 2


def bad_signatures():
    def no_annotation(a, *, B=1):
        pass

    def unknown(a: nothing):  # noqa: F821
        pass

    def tile(a: rt[f32, 4, 4]):
        pass

    def text(a: str):
        pass

    def small_scalar(a: bf16):
        pass

    def star(*tensors: gl):
        pass

    def reserved(target: gl):
        pass

    def default(a: gl = 3):
        pass

    def not_a_dtype(a: gl[int]):
        pass

    return [
        (no_annotation, "parameter 'a' has no annotation", "a"),
        (unknown, "annotation 'nothing' of parameter 'a' cannot be evaluated: name 'nothing'", "a: nothing"),
        (tile, "tiles are loaded inside", "a: rt[f32, 4, 4]"),
        (text, "has the annotation str, expected gl", "a: str"),
        (small_scalar, "a scalar is one of i32, i64, f32, bool, got bf16", "a: bf16"),
        (star, r"a kernel cannot take \*tensors", "tensors: gl"),
        (reserved, "'target' is a keyword of every launch", "target: gl"),
        (default, "tensor parameter 'a' cannot have the default 3", "a: gl"),
        (not_a_dtype, r"gl\[...\] takes one dtype", "a: gl[int]"),
    ]


@pytest.mark.parametrize(
    ("function", "message", "marked"), bad_signatures(), ids=lambda x: getattr(x, "__name__", None)
)
def test_bad_signatures_are_refused_at_the_parameter(function, message, marked):
    with pytest.raises((CaptureError, TileTypeError), match=message) as info:
        ww.kernel(function)
    loc = info.value.loc
    assert (loc.file, loc.line, loc.function) == (__file__, function.__code__.co_firstlineno, function.__name__)
    assert str(info.value).splitlines()[-1].strip() == "^" * len(marked)


def test_only_functions_are_kernels():
    with pytest.raises(CaptureError, match="takes a function, got type"):
        ww.kernel(int)


# -- arguments ----------------------------------------------------------------------------------------


def test_arguments_by_position_and_name(backend):
    a, c = arrays(np.float16, np.float32)
    double(a, c=c, alpha=3, B=32)
    ((kernel, target, options),) = backend.compiled
    assert (kernel.name, target, options) == ("double", "rec", {})
    assert kernel.param_names == ["a", "c", "alpha"]
    assert kernel.constants == {"B": 32, "flavour": "plain"}


def test_scalars_reach_the_program_as_the_kernel_sees_them(backend):
    @ww.kernel
    def k(c: gl, x: float, n: int, flag: bool):
        ww.store(c, (0, 0), ww.zeros(rt[f32, 4, 4]) * x)

    compiled = k.compile(ww.spec("f32[4,4]"), 0.1, 7, True, target="rec")
    compiled.run(arrays(np.float32)[0], np.float64(0.1), np.int8(7), np.bool_(True))
    (run,) = compiled.program.runs
    assert run["x"] == float(np.float32(0.1))
    assert (run["n"], type(run["n"])) == (7, int)
    assert (run["flag"], type(run["flag"])) == (True, bool)
    assert isinstance(run["c"], Array)


BAD = {
    "dtype": (
        lambda a, c: double(a, c.astype(np.float16)),
        TileTypeError,
        "argument 'c': expected gl[f32], got f16[4,6]",
        "c: gl[f32]",
    ),
    "rank": (
        lambda a, c: double(np.zeros((1,) * 5, np.float32), c),
        TileTypeError,
        "argument 'a': expected 1 to 4 dimensions, got 5",
        "a: gl",
    ),
    "rank 0": (
        lambda a, c: double(a[0, 0:1].reshape(()), c),
        TileTypeError,
        "expected 1 to 4 dimensions, got 0",
        "a: gl",
    ),
    "list": (lambda a, c: double([1.0], c), TileTypeError, "argument 'a': expected gl, got list", "a: gl"),
    "text": (lambda a, c: double("f32[4,4]", c), TileTypeError, "got the text 'f32[4,4]'", "a: gl"),
    "numpy dtype": (
        lambda a, c: double(a.astype(np.float64), c),
        TileTypeError,
        "dtype float64 is not an element type",
        "a: gl",
    ),
    "none": (lambda a, c: double(None, c), TileTypeError, "expected gl, got None", "a: gl"),
    "number": (
        lambda a, c: double(a, c, None, "x"),
        TileTypeError,
        "expected a number of f32, got str 'x'",
        "alpha: float",
    ),
    "bool for float": (
        lambda a, c: double(a, c, None, True),
        TileTypeError,
        "expected a number of f32, got bool True",
        "alpha: float",
    ),
    "too large": (lambda a, c: double(a, c, None, 1e39), TileValueError, "1e+39 does not fit f32", "alpha: float"),
    "missing": (lambda a, c: double(a), TileTypeError, "missing the argument(s) c: gl[f32]", "c: gl[f32]"),
    "too many": (lambda a, c: double(a, c, None, 1.0, 5), TileTypeError, "takes 4 argument(s), got 5", "def double"),
    "twice": (lambda a, c: double(a, c, a=a), TileTypeError, "got argument 'a' twice", "a: gl"),
    "unknown": (
        lambda a, c: double(a, c, flavor="x"),
        TileTypeError,
        "has no parameter or constant 'flavor'",
        "def double",
    ),
    "spec": (lambda a, c: double(a, ww.spec("f32[4,4]")), TileTypeError, "a description without data", "c: gl[f32]"),
    "extent": (
        lambda a, c: double.compile(ww.spec("f32[4294967296,4]"), c, target="rec"),
        TileValueError,
        "extent of 4294967296 is beyond",
        "a: gl",
    ),
    "read-only": (
        lambda a, c: double(a, np.broadcast_to(c, c.shape)),
        TileValueError,
        "written by the kernel, but this array is read-only",
        "c: gl[f32]",
    ),
    "overlap": (
        lambda a, c: double(a, np.lib.stride_tricks.as_strided(c, (4, 4), (4, 4))),
        TileValueError,
        "strides [1, 1] share memory",
        "c: gl[f32]",
    ),
    "devices": (
        lambda a, c: double(a, Array(f32, (4, 6), (6, 1), "dlpack2:1", 64, None)),
        LaunchError,
        "different devices: a on cpu:0, c on dlpack2:1",
        "def double",
    ),
    "no target": (
        lambda a, c: double.compile(ww.spec("f32[4,4]"), ww.spec("f32[4,4]")),
        TileValueError,
        "needs target=",
        "def double",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused_at_the_parameter(backend, case):
    call, kind, message, marked = BAD[case]
    with pytest.raises(kind, match=re.escape(message)) as info:
        call(*arrays(np.float32, np.float32))
    text = str(info.value)
    assert "kernel double" in text
    assert info.value.loc.file == __file__
    assert text.splitlines()[-1].strip() == "^" * len(marked)
    source, caret = text.splitlines()[-2:]
    assert source[caret.index("^") :].startswith(marked)


def test_integers_must_fit(backend):
    @ww.kernel
    def k(c: gl, n: i32):
        ww.store(c, (0, 0), ww.zeros(rt[f32, 4, 4]))

    with pytest.raises(TileValueError, match="2147483648 does not fit i32"):
        k(*arrays(np.float32), 2**31)
    with pytest.raises(TileTypeError, match=r"expected a number of i32, got float 1\.0"):
        k(*arrays(np.float32), 1.0)


def test_arrays_that_are_only_read_may_be_read_only_and_broadcast(backend):
    a, c = arrays(np.float32, np.float32)
    double(np.broadcast_to(a[:1], a.shape), c)
    assert len(backend.compiled) == 1


def test_a_device_that_no_backend_takes(backend):
    with pytest.raises(ww.UnsupportedError, match="no installed backend takes arrays on dlpack9:0"):
        double(*(Array(f32, (4, 6), (6, 1), "dlpack9:0", 64, None) for _ in range(2)))


# -- compiling ----------------------------------------------------------------------------------------


def test_compiled_shows_what_it_became(backend):
    compiled = double.compile(ww.spec("bf16[?,?]"), ww.spec("f32[?,?]"), target="rec:other", B=32, options={"x": 1})
    assert str(compiled.ir).startswith("kernel @double(%a: gl<bf16, 2d>, %c: gl<f32, 2d>, %alpha: f32) [B=32")
    assert (compiled.source, compiled.asm, compiled.resources) == ("source text", "asm text", {"registers": 3})
    assert compiled.target == "rec:other"
    assert backend.compiled[0][1:] == ("rec:other", {"x": 1})


def test_where_constants_come_from(backend):
    backend.tuned = {"B": 8, "flavour": "tuned"}
    compiled = double.compile(ww.spec("f32[4,4]"), ww.spec("f32[4,4]"), target="rec", flavour="mine")
    assert compiled.constants == {"B": 8, "flavour": "mine"}
    text = compiled.explain()
    assert "B = 8 (tuned for rec)" in text
    assert "flavour = 'mine' (from the call)" in text
    assert text.endswith("nothing to choose")
    backend.tuned = Suggestion({"B": 8, "flavour": "tuned"}, {"B": "two are slower"})
    text = double.compile(*[ww.spec("f32[8,8]")] * 2, target="rec").explain()
    assert "B = 8 (tuned for rec: two are slower)" in text
    assert "flavour = 'tuned' (tuned for rec)" in text
    backend.tuned = {}
    assert "B = 16 (default)" in double.compile(*[ww.spec("f32[4,4]")] * 2, target="rec").explain()


def test_a_constant_without_default_must_be_given(backend):
    @ww.kernel
    def k(c: gl, *, N):
        ww.store(c, (0, 0), ww.zeros(rt[f32, N, N]))

    with pytest.raises(TileTypeError, match="missing the constant N") as info:
        k(*arrays(np.float32))
    assert info.value.loc.line == k.function.__code__.co_firstlineno + 1
    k(*arrays(np.float32), N=4)


def test_one_compile_for_each_kind_of_call(backend):
    a, c = arrays(np.float32, np.float32)
    double(a, c)
    double(np.zeros((100, 3), np.float32)[::2, ::-1], np.zeros((7, 7), np.float32), None, 2.0)
    assert len(backend.compiled) == 1
    double(a, c, B=32)
    double(a.astype(np.float16), c)
    double(a, c, a)
    double(a, c, target="rec:other")
    double(a, c, options={"schedule": "x"})
    assert len(backend.compiled) == 6
    double(a, c, B=32)
    assert len(backend.compiled) == 6


def test_constants_that_compare_equal_stay_apart(backend):
    a, c = arrays(np.float32, np.float32)
    for flavour in (1, True, 1.0, 0.0, -0.0, [1], (1,)):
        double(a, c, flavour=flavour)
    assert len(backend.compiled) == 7


def test_a_changed_global_is_captured_again(backend, monkeypatch):
    a, c = arrays(np.float32, np.float32)
    double(a, c)
    double(a, c)
    assert len(backend.compiled) == 1
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    double(a, c)
    assert len(backend.compiled) == 2
    assert "3.0" in str(backend.compiled[1][0])


def test_eight_threads_compile_once(backend):
    backend.delay = 0.05
    a, c = arrays(np.float32, np.float32)
    errors = []

    def launch():
        try:
            double(a, c.copy(), B=64)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=launch) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(backend.compiled) == 1


def test_threads_that_capture_different_kernels_do_not_mix(backend):
    def work(size):
        for _ in range(5):
            compiled = double.compile(*[ww.spec("f32[?,?]")] * 2, target="rec", B=size, flavour=object())
            texts.append((size, f"rt<f32, {size}x{size}>" in str(compiled.ir)))

    texts = []
    threads = [threading.Thread(target=work, args=(2**n,)) for n in range(3, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 20
    assert all(ok for _, ok in texts)


def test_a_failed_compile_is_tried_again(backend):
    a, c = arrays(np.float32, np.float32)
    original = backend.compile
    backend.compile = lambda *args: (_ for _ in ()).throw(ww.ResourceError("out of registers"))
    with pytest.raises(ww.ResourceError, match="out of registers") as info:
        double(a, c)
    assert info.value.loc.function == "double"
    backend.compile = original
    double(a, c)
    assert len(backend.compiled) == 1


# -- running ------------------------------------------------------------------------------------------


def test_run_takes_only_what_it_was_compiled_for(backend):
    compiled = double.compile(*[ww.spec("f32[4,4]")] * 2, target="rec")
    a, c = arrays(np.float32, np.float32)
    compiled.run(a, c)
    compiled.run(a, c=c, alpha=2)
    assert [r["alpha"] for r in compiled.program.runs] == [1.0, 2.0]
    assert "bias" not in compiled.program.runs[0]
    with pytest.raises(TileTypeError, match=r"was compiled for \(a: gl<f32, 2d>.*got \(a: gl<f16, 2d>"):
        compiled.run(a.astype(np.float16), c)
    with pytest.raises(TileTypeError, match="is compiled: B cannot change"):
        compiled.run(a, c, B=4)


def test_a_kernel_in_a_kernel_is_refused_at_the_call(backend):
    @ww.kernel
    def outer(a: gl, c: gl):
        double(a, c)

    with pytest.raises(CaptureError, match="kernel double is called inside another kernel") as info:
        outer(*arrays(np.float32, np.float32))
    assert "plain function" in info.value.hint
    assert info.value.loc.line == outer.function.__code__.co_firstlineno + 2


def test_sample_inputs():
    @ww.kernel
    def k(a: gl, *, B=1):
        pass

    with pytest.raises(TileValueError, match="has no sample inputs"):
        k.sample_inputs()

    @k.samples
    def samples(rng):
        for n in (1, 2):
            yield {"a": rng.standard_normal(n, np.float32), "B": n}

    first, again = k.sample_inputs(5), k.sample_inputs(5)
    assert [s["B"] for s in first] == [1, 2]
    assert all(np.array_equal(x["a"], y["a"]) for x, y in zip(first, again, strict=True))


def test_a_cached_launch_is_quick(backend):
    a, c = arrays(np.float32, np.float32)
    double(a, c)
    best = min(_seconds(lambda: double(a, c)) for _ in range(200))
    assert best < 1e-3


def _seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
