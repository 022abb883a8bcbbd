"""Whole kernels with a target's matrix arithmetic: the simulator's machine code gives the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave.conformance.contract import execute_as
from warpwave.conformance.verdicts import same_bits
from warpwave.tiles.reference import execute


@ww.kernel
def product(a: ww.gl, b: ww.gl, c: ww.gl, *, B=32):
    """c = a @ b.T"""
    m, n = ww.grid(ww.cdiv(c.rows, B), ww.cdiv(c.cols, B))
    acc = ww.zeros(ww.rt[ww.f32, B, B])
    for k in ww.pipeline(ww.cdiv(a.cols, B)):
        at = ww.load(a, (m, k), ww.st[a.dtype, B, B])
        bt = ww.load(b, (n, k), ww.st[b.dtype, B, B])
        acc = ww.mma_ABt(acc, at, bt)
    ww.store(c, (m, n), acc)


def arguments(dtype, k=96):
    rng = np.random.default_rng(0)
    spread = np.exp2(rng.integers(-4, 5, (40, k)))
    a, b = ((rng.standard_normal((40, k)) * spread).astype(dtype.numpy) for _ in range(2))
    return {"a": a, "b": b, "c": np.zeros((40, 40), np.float32)}


CASES = [
    ("amd:gfx942", ww.bf16),
    ("amd:gfx942", ww.f16),
    ("amd:gfx942", ww.fp8e4m3fnuz),
    ("amd:gfx942", ww.fp8e5m2),
    ("amd:gfx950", ww.bf16),
    ("amd:gfx950", ww.fp8e4m3),
]


@pytest.mark.parametrize(("target", "dtype"), CASES, ids=str)
def test_compiled_code_gives_the_bits_of_the_model(target, dtype):
    given = arguments(dtype)
    modelled, simulated, exact = ({**given, "c": given["c"].copy()} for _ in range(3))
    ir = product.compile(**given, target="reference").ir
    execute_as(ir, modelled, target)
    execute(ir, exact)
    product.compile(**simulated, target=target).run(**simulated)
    assert same_bits(simulated["c"], modelled["c"]).all()
    assert not same_bits(exact["c"], modelled["c"]).all()


def test_the_order_of_depth_is_that_of_the_schedule_which_is_taken():
    given = arguments(ww.bf16, k=192)
    modelled, simulated = ({**given, "c": given["c"].copy()} for _ in range(2))
    compiled = product.compile(**simulated, B=128, target="amd:gfx950:sim")
    assert "schedule multistage" not in compiled.explain()
    compiled.run(**simulated)
    execute_as(compiled.ir, modelled, "amd:gfx950")
    assert same_bits(simulated["c"], modelled["c"]).all()


def test_hopper_and_cdna3_differ_in_bits():
    given = arguments(ww.bf16)
    ir = product.compile(**given, target="reference").ir
    results = []
    for target in ("nvidia:sm90a", "amd:gfx942"):
        own = {**given, "c": given["c"].copy()}
        execute_as(ir, own, target)
        results.append(own["c"])
    assert not same_bits(*results).all()


def test_a_target_without_models_gets_the_reference():
    given = arguments(ww.bf16)
    own, exact = ({**given, "c": given["c"].copy()} for _ in range(2))
    ir = product.compile(**given, target="reference").ir
    execute_as(ir, own, "toy:one")
    execute(ir, exact)
    assert same_bits(own["c"], exact["c"]).all()
