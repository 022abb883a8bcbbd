"""Assembly text and code object are the same program: same instructions, same results, same counts."""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.backends.amd import sim

from . import _compile
from ._drivers import load_all

CASES = [(d, t) for d in load_all() for t in d.targets]
IDS = [f"{d.id}-{t}" for d, t in CASES]


class Recorder:
    """Launches through one route and keeps every buffer and the counts per instruction."""

    def __init__(self, item, target, source) -> None:
        self.target, self.data = target, 0
        self.program = sim.load(source)
        self.name = _compile.kernel_name(item.text(target), item.kernel)
        self.buffers: list[bytes] = []
        self.counts: list[tuple] = []

    def __call__(self, grid, block, *args, **more):
        args = [np.ascontiguousarray(a) if isinstance(a, np.ndarray) else a for a in args]
        report = self.program.launch(self.name, grid=grid, block=block, args=args, **more)
        self.buffers += [a.tobytes() for a in args if isinstance(a, np.ndarray)]
        self.counts.append(tuple(self.line(i) for i in report.listing_lines if i.executed))
        return report

    @staticmethod
    def line(i) -> tuple:
        text = i.text
        if text.startswith(("s_branch", "s_cbranch")):  # labels have other names, targets are compared by execution
            text = text.rsplit(None, 1)[0]
        return (text, i.executed, i.active_lanes, i.bytes, i.lines, i.lds_cycles, i.lds_conflicts)


@pytest.mark.parametrize(("item", "target"), CASES, ids=IDS)
def test_both_routes_execute_the_same(item, target):
    text = item.text(target)
    routes = [Recorder(item, target, source) for source in (text, _compile.assemble(text, target))]
    for route in routes:
        assert not [w for check in item.run(route, np.random.default_rng(0)) if (w := check.wrong())]
    assert routes[0].buffers == routes[1].buffers
    assert [relative(c) for c in routes[0].counts] == [relative(c) for c in routes[1].counts]


def relative(counts: tuple) -> list[tuple]:
    """Counts without the literals that hold an address relative to the program counter."""
    out, after = [], 0
    for text, *numbers in counts:
        after = 4 if text.startswith("s_getpc") else after - 1
        out.append((text.rsplit(",", 1)[0] if after > 0 and text.startswith(("s_add", "s_addc")) else text, *numbers))
    return out


@pytest.mark.parametrize("version", [4, 5, 6])
def test_every_version_of_code_object_runs(version):
    source = _compile.HERE / "hip" / "runtime.hip"
    text = _compile.hip(source, "gfx942", f"-mcode-object-version={version}")
    program = sim.load(_compile.assemble(text, "gfx942", code_object=version))
    a, b, c = (np.random.default_rng(s).standard_normal(70).astype(np.float32) for s in range(3))
    program.launch("vector_add", (2,), (64,), [c, a, b, np.int32(70)])
    assert np.array_equal(c, a + b)
    out = np.zeros((3, 2), np.uint32)
    program.launch("geometry", (3,), (192,), [out, np.int32(3)])
    assert out.tolist() == [[3, 192]] * 3


def test_variables_and_pointers_in_data_are_relocated(tmp_path):
    """A table of pointers to other variables: the linker leaves absolute relocations for the loader."""
    source = tmp_path / "tables.hip"
    source.write_text(
        """
#include "common.h"
__attribute__((device)) int first[2] = {10, 20};
__attribute__((device)) int second[2] = {30, 40};
__attribute__((device)) int* table[3] = {first, second + 1, first + 1};
extern "C" GLB void gather(int* out, int n) { if (tid() < n) out[tid()] = *table[tid()]; }
"""
    )
    text = _compile.hip(source, "gfx950")
    for program in (sim.load(text), sim.load(_compile.assemble(text, "gfx950"))):
        out = np.zeros(3, np.int32)
        program.launch("gather", (1,), (64,), [out, np.int32(3)])
        assert out.tolist() == [10, 40, 20]


def test_arguments_are_checked_against_the_metadata():
    program = sim.load(_compile.hip(_compile.HERE / "hip" / "runtime.hip", "gfx950"))
    assert [(a.name, a.offset, a.size, a.is_pointer) for a in program.info["affine"].arguments] == [
        ("", 0, 8, True),
        ("", 8, 1, False),
        ("", 16, 8, False),
        ("", 24, 4, False),
    ]
    x = np.arange(5, dtype=np.float32)
    program.launch("affine", (1,), (64,), [x, 3, np.float64(0.5), 5])
    assert x.tolist() == [0.5, 3.5, 6.5, 9.5, 12.5]
    with pytest.raises(sim.LoadError, match=r"affine takes 4 arguments .*; 3 given"):
        program.launch("affine", (1,), (64,), [x, 3, np.float64(0.5)])
    with pytest.raises(sim.LoadError, match=r"argument 1 .*256 does not fit 1 bytes"):
        program.launch("affine", (1,), (64,), [x, 256, np.float64(0.5), 5])
    with pytest.raises(sim.LoadError, match=r"argument 2 .*8 bytes by value; float32, 4 bytes was given"):
        program.launch("affine", (1,), (64,), [x, 3, np.float32(0.5), 5])
    with pytest.raises(sim.LoadError, match="compiled for 64 work-items, 128 asked for"):
        program.launch("reverse", (1,), (128,), [x])
