"""Each pass on random programs: valid IR, the same results bit for bit, and nothing left to do a second time."""

from __future__ import annotations

import linecache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from warpwave.tiles import passes
from warpwave.tiles.capture.capture import trace
from warpwave.tiles.ir import OPS, print_kernel, verify, walk
from warpwave.tiles.reference import execute
from warpwave.tiles.tests.programs import PARAMETERS, arguments
from warpwave.tiles.tests.random_programs import load_program, programs

ALL = [getattr(passes, name) for name in passes.__all__]
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


def traced(program):
    names = program.__code__.co_varnames[: program.__code__.co_argcount]
    return trace(program, {n: PARAMETERS[n] for n in names}, {}).kernel


def results(kernel, program):
    found = []
    for n in (-1, 0, 3):
        values = arguments(program, n, 1.5)
        execute(kernel, values)
        found.append(values["out"].view(np.int32))
    return found


def check_pass(run, text):
    program = load_program(text)
    kernel = traced(program)
    linecache.cache.pop(program.__code__.co_filename)
    verify(kernel)
    assert all(op.loc is not None for op in walk(kernel.body))
    effects = [op.name for op in walk(kernel.body) if OPS[op.name].effect == "write" and not op.regions]
    before = results(kernel, program)
    run(kernel)
    verify(kernel)
    assert all(op.loc is not None for op in walk(kernel.body))
    np.testing.assert_array_equal(results(kernel, program), before)
    stores = [op.name for op in walk(kernel.body) if op.name == "store"]
    assert stores == [name for name in effects if name == "store"]
    once = print_kernel(kernel)
    run(kernel)
    assert print_kernel(kernel) == once


@pytest.mark.parametrize("run", ALL, ids=lambda p: p.__name__)
@settings(max_examples=12, deadline=None, suppress_health_check=QUIET)
@given(text=programs())
def test_pass(run, text):
    check_pass(run, text)


@pytest.mark.sweep
@pytest.mark.parametrize("run", ALL, ids=lambda p: p.__name__)
@settings(max_examples=500, deadline=None, suppress_health_check=QUIET)
@given(text=programs())
def test_pass_on_many_programs(run, text):
    check_pass(run, text)
