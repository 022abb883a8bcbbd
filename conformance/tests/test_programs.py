"""Generated programs: every op, right by construction, the same everywhere, and short when they fail."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from warpwave.conformance.programs import arguments_of, coverage, kernel_of, program_of_seed, render, render_script
from warpwave.conformance.programs.memory import LAYOUTS, memory
from warpwave.conformance.programs.shrink import shrink
from warpwave.conformance.programs.strategies import programs
from warpwave.conformance.programs.values import FLOATS, INTEGERS, Words, fill
from warpwave.tiles.dtypes import ALL, bf16, f32, fp8e4m3, i8, i32
from warpwave.tiles.ir import walk
from warpwave.tiles.ir.opdefs import OPS
from warpwave.tiles.reference import execute, oracle

PAGE = Path(__file__).parents[2] / "docs/generated_programs.md"
NOT_GENERATED = {
    "print": "its effect is text, which is not compared",
    "squeeze": "no function of the language makes it",
}


def captured(program):
    return kernel_of(program).compile(**arguments_of(program), target="reference").ir


def test_every_op_of_the_table_is_generated():
    wanted = set(OPS) - set(NOT_GENERATED)
    for seed in range(400):
        wanted -= {op.name for op in walk(captured(program_of_seed(seed)).body)}
        if not wanted:
            return
    pytest.fail(f"never generated: {sorted(wanted)}")


def test_every_kind_of_the_list_is_generated_and_counted():
    found = coverage.count(300)
    assert not [f.name for f, seeds in found.items() if not seeds]
    assert len({f.group for f in found}) == 14
    row = re.compile(r"^\| [a-z ]+ \| (.*) \| (\d+) \| [\d.]+ % \| `program:(\d+)` \|$", re.MULTILINE)
    for feature, (name, number, seed) in zip(coverage.FEATURES, row.findall(PAGE.read_text()), strict=True):
        assert feature.name == name
        assert int(number) >= 40
        assert feature.holds(coverage.Contents(program_of_seed(int(seed)))), name


@pytest.mark.sweep
def test_the_page_of_generated_programs_is_fresh():
    assert PAGE.read_text() == coverage.page()


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_programs_are_valid_and_the_reference_is_within_the_bounds(program):
    ir, arguments = captured(program), arguments_of(program)
    allowed = oracle(ir, arguments)
    execute(ir, arguments)
    for name, estimate in allowed.items():
        assert estimate.agrees(arguments[name]).all(), name


@pytest.mark.sweep
def test_many_programs_are_valid_and_the_reference_is_within_the_bounds():
    for seed in range(10_000, 12_000):
        program = program_of_seed(seed)
        ir, arguments = captured(program), arguments_of(program)
        allowed = oracle(ir, arguments)
        execute(ir, arguments)
        assert all(e.agrees(arguments[n]).all() for n, e in allowed.items()), seed


def test_a_seed_gives_the_same_program_in_another_process():
    code = "from warpwave.conformance.programs import *; print(render_script(program_of_seed(77), 'reference'), end='')"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout == render_script(program_of_seed(77), "reference")


def test_seeds_give_different_programs():
    assert len({render(program_of_seed(seed)) for seed in range(60)}) == 60


def test_the_script_of_a_program_runs_and_compares(capsys, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(render_script(program_of_seed(3), "reference"))
    runpy.run_path(str(script))
    assert "agrees" in capsys.readouterr().out


# -- shrinking ----------------------------------------------------------------------------------------


def first_with(text):
    return next(p for p in map(program_of_seed, range(1000)) if text in render(p) and p.size > 8)


@pytest.mark.parametrize("text", ["ww.exp2(", "ww.cumsum(", "ww.atomic_add("])
def test_a_failure_shrinks_to_a_few_statements(text):
    def fails(program):
        try:
            captured(program)
        except Exception:
            return None
        return "bad" if text in render(program) else None

    program = first_with(text)
    shrunk = shrink(program, fails, seconds=60)
    assert shrunk.size <= 3 < program.size
    assert fails(shrunk) == "bad"
    assert all(re.search(rf"\b{t.name}\b", render(shrunk).split("def program", 1)[1]) for t in shrunk.tensors)


def test_shrinking_keeps_what_does_not_fail():
    program = program_of_seed(5)
    assert shrink(program, lambda _: None) is program


# -- values and memory --------------------------------------------------------------------------------


def test_random_words_are_philox_and_the_distributions_are_pinned():
    """Records hold inputs by seed: these numbers may never change."""
    words = Words(42, 3).uniform((3,))
    expected = np.random.Philox(key=np.array([42, 3], np.uint64)).random_raw(3)
    assert [int(x * 2**53) for x in words] == [int(x) >> 11 for x in expected]
    assert fill("normal", f32, (2,), 42, 3).tolist() == PINNED["normal"]
    assert fill("whole range", i32, (2,), 42, 3).tolist() == PINNED["whole range"]


PINNED = {"normal": [-1.0232038497924805, -1.347715973854065], "whole range": [-1236030187, 302823618]}


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_distribution_exists_for_every_dtype(dtype):
    names = FLOATS if dtype.is_float else INTEGERS if dtype.is_int else ("normal", "zeros", "ones")
    for name in names:
        values = fill(name, dtype, (40, 24), 1, 2)
        assert values.dtype == dtype.numpy
        assert values.shape == (40, 24)


def test_adversarial_values_are_what_they_say():
    assert np.isnan(fill("special", f32, (64, 64), 0, 0)).any()
    assert np.isinf(fill("masked rows", bf16, (64, 8), 0, 0).astype(np.float32)).all(axis=1).any()
    tiny = np.abs(fill("denormal", f32, (64, 64), 0, 0))
    assert ((tiny > 0) & (tiny < np.finfo(np.float32).tiny)).any()
    x = fill("cancelling", f32, (64, 64), 0, 0).astype(np.float64)
    assert (np.abs(x[:, :-1:2] + x[:, 1::2]) < 1e-3 * np.abs(x[:, 1::2])).all()
    assert len(np.unique(fill("any bits", fp8e4m3, (64, 64), 0, 0).view(np.uint8))) > 250
    assert {-128, 127} <= set(fill("edges", i8, (64, 64), 0, 0).ravel().tolist())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_hold_the_values(layout):
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    array = memory(layout, values)
    np.testing.assert_array_equal(array, values)
    contiguous = layout in ("rows", "offset")
    assert (array.strides == values.strides) == contiguous
    assert (array.__array_interface__["data"][0] % 16 == 0) == (layout in ("rows", "columns", "sliced"))
