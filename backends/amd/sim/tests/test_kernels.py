"""Compiled kernels, the given corpus and our own, give NumPy's answers in strict mode on both targets."""

from __future__ import annotations

import pytest

from warpwave.backends.amd import sim

from . import _compile
from ._drivers import load_all, run_driver

CASES = [(d, t) for d in load_all() for t in d.targets]
IDS = [f"{d.id}-{t}" for d, t in CASES]


@pytest.mark.parametrize(("item", "target"), CASES, ids=IDS)
def test_kernel_gives_numpys_answer(item, target):
    program = sim.load(item.text(target), target=target)
    assert not run_driver(item, target, program)


EXCHANGING = ("reduce", "layernorm", "softmax", "pingpong", "gemm_dma", "atomics_lds", "generic_lds")


@pytest.mark.parametrize("target", _compile.TARGETS)
@pytest.mark.parametrize("kernel", EXCHANGING)
def test_waves_that_exchange_data_under_other_interleavings(kernel, target):
    item = next(d for d in load_all() if d.kernel == kernel)
    program = sim.load(item.text(target), target=target)
    for seed in range(1, 6):
        assert not run_driver(item, target, program, seed=seed, data_seed=seed), f"seed {seed}"


def test_every_kernel_of_every_source_has_a_driver():
    driven = {(d.source, d.kernel, t) for d, t in CASES}
    for folder in ("corpus", "kernels"):
        for path in sorted((_compile.HERE / folder).glob("*.hip")):
            for target in _compile.TARGETS:
                names = _compile.kernel_names(_compile.hip(path, target))
                here = [k for s, k, t in driven if s == f"{folder}/{path.name}" and t == target]
                assert sorted(_compile.kernel_name(_compile.hip(path, target), k) for k in here) == sorted(names)


@pytest.mark.sweep
@pytest.mark.parametrize(("item", "target"), CASES, ids=IDS)
def test_no_false_alarm_under_any_interleaving(item, target):
    program = sim.load(item.text(target), target=target)
    for seed in range(20):
        assert not run_driver(item, target, program, seed=seed, data_seed=seed), f"seed {seed}"


@pytest.mark.parametrize(("item", "target"), CASES, ids=IDS)
def test_code_object_gives_the_same_answer(item, target):
    program = sim.load(_compile.assemble(item.text(target), target), target=target)
    assert not run_driver(item, target, program)
