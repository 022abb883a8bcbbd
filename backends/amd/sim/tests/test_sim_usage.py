"""Wrong use of the Python interface: each mistake has a message that says what was wanted."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from warpwave.backends.amd import sim

from . import _compile

TARGET = "gfx942"
TEXT = _compile.hip(_compile.HERE / "hip" / "runtime.hip", TARGET)
N = 100


def buffers() -> list:
    return [np.zeros(N, np.float32), np.ones(N, np.float32), np.ones(N, np.float32), np.int32(N)]


def launch(args: list | None = None, kernel: str = "vector_add", **options):
    options = {"grid": (2,), "block": (64,), **options}
    return sim.load(TEXT).launch(kernel, args=buffers() if args is None else args, **options)


def with_argument(index: int, value: object) -> list:
    return [value if i == index else a for i, a in enumerate(buffers())]


def test_the_right_use():
    args = buffers()
    assert launch(args).waves == 2
    assert (args[0] == 2).all()


FROZEN = np.zeros(N, np.float32)
FROZEN.flags.writeable = False

ARGUMENTS = [
    (0, np.zeros((N, 2), np.float32)[:, 0], TypeError, r"argument 0 .* C-contiguous.*strides of \(8,\) bytes"),
    (0, np.zeros((10, 10), np.float32, order="F"), TypeError, "np.ascontiguousarray"),
    (0, np.array([None] * N), TypeError, "a device cannot hold an array of object"),
    (0, np.array(["x"] * N), TypeError, "a device cannot hold an array of <U1"),
    (0, np.zeros(N, ">f4"), TypeError, "foreign byte order"),
    (0, np.ma.masked_array(np.zeros(N, np.float32)), TypeError, "a masked array"),
    (0, [1.0] * N, TypeError, "pass a NumPy array or scalar, not list"),
    (0, np.float32(1), sim.LoadError, r"argument 0 .*a pointer; float32, 4 bytes was given"),
    (3, 2.5, TypeError, r"such as np.float32\(x\), not float"),
    (3, True, TypeError, r"such as np.bool_\(x\), not bool"),
    (3, np.int64(N), sim.LoadError, "4 bytes by value; int64, 8 bytes was given"),
    (3, 2**40, sim.LoadError, "1099511627776 does not fit 4 bytes"),
    (3, np.array(N, np.int32), sim.LoadError, r"such as np.int32\(n\); an array of int32 was given"),
]


@pytest.mark.parametrize(("index", "value", "error", "message"), ARGUMENTS)
def test_arguments(index, value, error, message):
    with pytest.raises(error, match=message):
        launch(with_argument(index, value))


@pytest.mark.parametrize(("args", "message"), [
    ([], r"vector_add takes 4 arguments \(0: .*3: .*4 bytes by value\); 0 given"),
    (buffers()[0], "args of vector_add is a list of arguments, not an array of float32"),
])  # fmt: skip
def test_lists_of_arguments(args, message):
    with pytest.raises((TypeError, sim.LoadError), match=message):
        launch(args)


OPTIONS = [
    ({"grid": 2}, TypeError, r"grid is a tuple of one to three numbers, such as grid=\(64,\), not 2"),
    ({"grid": (1, 1, 1, 1)}, sim.LoadError, "4 dimensions; one to three"),
    ({"grid": ()}, sim.LoadError, "0 dimensions; one to three"),
    ({"grid": (-1,)}, sim.LoadError, "grid is -1; it cannot be negative"),
    ({"grid": (1.5,)}, TypeError, "grid is a whole number, not 1.5"),
    ({"grid": (1 << 33,)}, sim.LoadError, "too large"),
    ({"block": (2048,)}, sim.LoadError, "was compiled for 1024 work-items, 2048 asked for|a workgroup has 1 to 1024"),
    ({"block": (0,)}, sim.LoadError, "work-items, not 0"),
    ({"seed": -1}, sim.LoadError, "seed is -1"),
    ({"seed": 1.5}, TypeError, "seed is a whole number"),
    ({"dynamic_lds": -4}, sim.LoadError, "dynamic_lds is -4"),
    ({"threads": -1}, sim.LoadError, "threads is -1"),
    ({"max_instructions": -1}, sim.LoadError, "max_instructions is -1"),
    ({"relax": "uninit"}, TypeError, r"such as relax=\['uninit'\]"),
    ({"relax": ["speed"]}, sim.LoadError, "no check 'speed' to relax; the checks are waits, lds_race"),
    ({"trace": (2, 0)}, sim.LoadError, r"trace=\(2, 0\) is no wave of this launch of 2 workgroups with 1 waves"),
    ({"trace": (0, 1)}, sim.LoadError, r"trace=\(0, 1\) is no wave"),
    ({"trace": 0}, TypeError, r"trace is \(linear workgroup, wave\)"),
    ({"accumulate": "exact"}, ValueError, "accumulate is 'cdna3' or 'sequential-rne'"),
    ({"kernel": "vector_sub"}, sim.LoadError, "no kernel 'vector_sub' in the program; it has .*vector_add"),
]


@pytest.mark.parametrize(("options", "error", "message"), OPTIONS)
def test_options(options, error, message):
    with pytest.raises(error, match=message):
        launch(**options)


@pytest.mark.parametrize(("name", "content", "target", "message"), [
    ("empty.s", b"", "", r"empty.s: no kernel in it; assembly of a kernel \(clang -S\) or a code object is wanted"),
    ("a.hip", b"__global__ void f() {}\n", "", "a.hip: no kernel in it"),
    ("noise", bytes(range(128, 256)), "", "noise: neither assembly text nor a code object"),
    ("old.s", TEXT.replace(TARGET, "gfx90a").encode(), "", "old.s: unknown target gfx90a; the simulator knows gfx942 and gfx950"),
    ("k.s", TEXT.encode(), "mi300x", "k.s: unknown target mi300x; the simulator knows gfx942 and gfx950"),
    ("k.s", TEXT.encode(), "gfx950", "is for gfx942, not gfx950"),
])  # fmt: skip
def test_files(tmp_path, name, content, target, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(sim.LoadError, match=message):
        sim.load(tmp_path / name, target)


def test_a_read_only_array_is_an_input():
    launch(with_argument(1, FROZEN))
    with pytest.raises(sim.SimError, match="read-only") as caught:
        launch(with_argument(0, FROZEN))
    assert caught.value.kind == "readonly"


def test_what_is_computed_from_an_undefined_array_is_defined():
    start = sim.undefined(N, np.float32)
    with pytest.raises(sim.SimError, match="undefined"):
        launch(with_argument(1, start))
    with pytest.raises(sim.SimError, match="undefined"):
        launch(with_argument(1, start[:]))
    launch(with_argument(1, start + 1))
    assert type(start + 1) is np.ndarray
    assert type(start.sum()) is np.float32


def test_an_empty_problem_runs_nothing():
    assert launch(grid=(0,)).waves == 0


def test_a_violation_survives_the_way_from_a_worker_process():
    with pytest.raises(sim.SimError) as caught:
        launch(with_argument(1, np.ones(10, np.float32)))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.kind, copy.address) == (str(caught.value), "bounds", caught.value.address)


def test_reports_print_as_text():
    report = launch()
    assert "vector_add on simulated gfx942\n" in str(report)
    assert "800 loaded, 400 stored" in str(report)
    assert len(repr(report)) < 600


def test_the_hip_runtime_checks_the_names_of_checks():
    with pytest.raises(sim.LoadError, match="no check 'everything' to relax"):
        sim.hip_runtime(TARGET, relax=["everything"])
