"""Mutation tests: what can go wrong on hardware is caught in strict mode or changes the result."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from warpwave.backends.amd import sim

from . import _mutants, _snippets
from ._compile import TARGETS
from ._drivers import load_all

QUICK = ("pingpong", "gemm_dma", "softmax", "generic_lds", "reduce", "layernorm")
PER_KERNEL = 12
SUBJECTS = [(d, t) for d in load_all() for t in d.targets]
IDS = [f"{d.id}-{t}" for d, t in SUBJECTS]


@lru_cache
def subject(kernel: str, target: str) -> _mutants.Subject:
    item = next(d for d in load_all() if d.kernel == kernel)
    return _mutants.Subject(item, target, more=range(3, 6))


def missed(case: _mutants.Subject, target: str, count: int) -> list[str]:
    """Mutants that nothing shows, and that no argument covers."""
    found = _mutants.chosen(_mutants.mutants(case.code, target), count)
    verdicts = [case.judge(m) for m in found]
    return [str(v.mutant) for v in verdicts if v.outcome in ("missed", "unreached")]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", QUICK)
def test_sampled_mutants_do_not_survive(kernel, target):
    assert not missed(subject(kernel, target), target, PER_KERNEL)


@pytest.mark.sweep
@pytest.mark.parametrize(("item", "target"), SUBJECTS, ids=IDS)
def test_no_mutant_survives(item, target):
    assert not missed(_mutants.Subject(item, target), target, 10**6)


@pytest.mark.parametrize("target", TARGETS)
def test_each_barrier_of_the_ping_pong_is_needed(target):
    """Deleting one re-pairs the rounds of the two halves (simulators.md 1, the BF16 8-wave case)."""
    case = subject("pingpong", target)
    found = [m for m in _mutants.mutants(case.code, target) if m.kind == "delete barrier"]
    assert [case.judge(m).outcome for m in found] == ["caught"] * 5


@pytest.mark.parametrize("target", TARGETS)
def test_waiting_for_a_direct_load_after_the_barrier(target):
    """The wait and the barrier of the kernel change places: right numbers by luck must not pass."""
    case = subject("gemm_dma", target)
    places = [i for i, x in enumerate(case.code.code) if x.name == "s_barrier"]
    place = next(i for i in places if "vmcnt(0)" in case.code.code[i - 1].text)
    lines = list(case.code.lines)
    first, second = case.code.code[place - 1].line, case.code.code[place].line
    lines[first], lines[second] = lines[second], lines[first]
    for seed in range(6):
        with pytest.raises(sim.SimError) as caught:
            case.results("\n".join(lines), seed)
        assert caught.value.kind in ("lds_race", "waits")


@pytest.mark.parametrize("target", TARGETS)
def test_flat_access_to_lds_needs_its_barriers(target):
    case = subject("generic_lds", target)
    for mutant in _mutants.mutants(case.code, target):
        if mutant.kind == "delete barrier":
            verdict = case.judge(mutant)
            assert verdict.outcome == "caught" or "wrote itself" in verdict.detail, str(mutant)


def test_the_harness_can_tell_a_survivor():
    """A change that does nothing must be reported as missed when no argument covers it."""
    case = subject("philox_raw", "gfx950")
    index = next(i for i, x in enumerate(case.code.code) if x.name == "s_endpgm")
    assert case.judge(_mutants.Mutant("nothing", index, "s_endpgm", "s_endpgm")).outcome == "missed"
    assert np.frombuffer(case.right(0)[0], np.uint32).size == 1200
    assert _snippets.START
