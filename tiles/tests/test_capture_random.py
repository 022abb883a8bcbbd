"""Random programs: capture and the reference give exactly CPython's answer."""

from __future__ import annotations

import linecache

import pytest
from hypothesis import HealthCheck, given, settings

from warpwave.tiles.errors import CaptureError
from warpwave.tiles.tests.programs import captured, check_agreement
from warpwave.tiles.tests.random_programs import load_program, programs

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example]
COMMON = {"deadline": None, "suppress_health_check": QUIET, "print_blob": True}
NS = (-2, 0, 1, 5)


def check(text):
    program = load_program(text)
    try:
        check_agreement(program, NS, (1.5,))
    finally:
        linecache.cache.pop(program.__code__.co_filename)


def check_or_refused(text):
    program = load_program(text)
    error = refusal(program)
    if error is None:
        check(text)
    else:
        assert error.loc is not None
        assert error.hint
        assert error.loc.file == program.__code__.co_filename


def refusal(program):
    try:
        captured(program)
    except CaptureError as error:
        return error
    return None


@settings(max_examples=70, **COMMON)
@given(programs())
def test_programs_agree(text):
    check(text)


@settings(max_examples=50, **COMMON)
@given(programs(wild=True))
def test_programs_with_aliases_agree_or_are_refused(text):
    check_or_refused(text)


@pytest.mark.sweep
@settings(max_examples=5000, **COMMON)
@given(programs())
def test_many_programs_agree(text):
    check(text)


@pytest.mark.sweep
@settings(max_examples=5000, **COMMON)
@given(programs(wild=True))
def test_many_programs_with_aliases_agree_or_are_refused(text):
    check_or_refused(text)
