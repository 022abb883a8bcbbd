"""The laws hold for right kernels on simulated targets, and each finds the fault that it is for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import warpwave as ww
from warpwave.conformance.metamorphic import LAWS, check
from warpwave.conformance.placement import LAYOUTS, place
from warpwave.conformance.verdicts import Level
from warpwave.kernels.softmax import softmax
from warpwave.tiles.reference import execute


@ww.kernel
def product(a: ww.gl, b: ww.gl, c: ww.gl, *, B=32):
    """c = a @ b"""
    m, n = ww.grid(ww.cdiv(c.rows, B), ww.cdiv(c.cols, B))
    acc = ww.zeros(ww.rt[ww.f32, B, B])
    for k in ww.pipeline(ww.cdiv(a.cols, B)):
        acc = ww.mma_AB(acc, ww.load(a, (m, k), ww.st[a.dtype, B, B]), ww.load(b, (k, n), ww.st[b.dtype, B, B]))
    ww.store(c, (m, n), acc)


@ww.kernel
def totals(x: ww.gl, y: ww.gl):
    """y += sum over rows of x, in any order"""
    i = ww.grid(ww.cdiv(x.rows, 16))
    ww.atomic_add(y, (0,), ww.sum(ww.load(x, (i, 0), ww.rt[ww.f32, 16, 32]), axis=0))


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def product_arguments(dtype=np.float32):
    a, b = numbers(20, 40).astype(dtype), numbers(40, 36, seed=1).astype(dtype)
    return {"a": a, "b": b, "c": np.zeros((20, 36), np.float32)}


def ir_of(kernel, arguments, **constants):
    return kernel.compile(**arguments, **constants, target="reference").ir


def by_reference(ir):
    return lambda arguments: execute(ir, arguments)


def laws_of(findings):
    return {f.law for f in findings}


@pytest.mark.parametrize("target", [pytest.param("amd:gfx942:sim", marks=pytest.mark.sweep), "amd:gfx950:sim"])
def test_all_laws_hold_for_a_product(target):
    arguments = product_arguments(ww.bf16.numpy)
    compiled = product.compile(**arguments, target=target)
    findings = check(
        ir_of(product, arguments),
        arguments,
        lambda given: compiled.run(**given),
        target=target,
        interleaved=lambda given, seed: compiled.program.simulate(
            compiled.binder.launchable(compiled.binder.bind((), given), ["c"]), seed=seed
        ),
    )
    assert laws_of(findings) == set(LAWS)
    assert not [str(f) for f in findings if f.level is not Level.BIT_EXACT]


@pytest.mark.parametrize("target", ["amd:gfx942:sim"])
def test_laws_hold_for_softmax(target):
    arguments = {"x": numbers(12, 50).astype(np.float32), "y": np.zeros((12, 50), np.float32)}
    run = softmax.compile(**arguments, target=target)
    findings = check(ir_of(softmax, arguments), arguments, lambda given: run.run(**given), target=target)
    assert laws_of(findings) == {"repeat", "layout", "padding", "rows", "batch"}
    assert not [str(f) for f in findings if not f.holds]


def faults(kernel, arguments, fault, law):
    """Findings of one law for a runner that is wrong."""
    ir = ir_of(kernel, arguments)
    counter = itertools.count()

    def run(given):
        execute(ir, given)
        fault(given, next(counter))

    return [
        f
        for f in check(ir, arguments, run, laws=[law], interleaved=lambda given, seed: (run(given), fault(given, seed)))
        if not f.holds
    ]


def change_in_run(given, number):
    given["c"][0, 0] += number == 7


def transposed(given, _):
    if given["a"].strides[0] < given["a"].strides[1]:
        given["c"][...] = 0


def reads_beyond(given, _):
    behind = np.ndarray((1,), np.float32, given["a"], 0, (4,)) if given["a"].base is None else given["a"].base
    if np.isnan(behind.view(np.float32)).any():
        given["c"][0, 0] = np.nan


def flushes(given, _):
    given["c"][np.abs(given["c"]) < 0.125] = 0


def depends_on_row(given, _):
    given["c"][0] *= 1.01


def depends_on_half(given, _):
    if len(given["c"]) == 20:
        given["c"][10] = 0


def writes_outside(given, _):
    view = given["c"]
    if view.strides[0] > view.shape[1] * 4:
        np.ndarray(
            (1,),
            np.float32,
            view.base,
            view.__array_interface__["data"][0] - view.base.__array_interface__["data"][0] + view.shape[1] * 4,
        )[0] = 5


def interleaving(given, seed):
    given["c"][1, 1] += seed == 3


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        (change_in_run, "repeat"),
        (transposed, "layout"),
        (reads_beyond, "padding"),
        (writes_outside, "padding"),
        (flushes, "scaling"),
        (depends_on_row, "rows"),
        (depends_on_half, "batch"),
        (interleaving, "waves"),
    ],
)
def test_each_law_finds_its_fault(fault, law):
    assert faults(product, product_arguments(), fault, law)


@pytest.mark.parametrize("law", LAWS)
def test_a_right_kernel_has_no_findings(law):
    assert not faults(product, product_arguments(), lambda given, _: None, law)


def test_atomic_sums_are_not_held_to_one_order():
    arguments = {"x": numbers(48, 32).astype(np.float32), "y": np.zeros(32, np.float32)}
    ir = ir_of(totals, arguments)
    assert laws_of(check(ir, arguments, by_reference(ir))) <= {"scaling", "rows", "batch"}


def test_an_unknown_law_is_named():
    with pytest.raises(LookupError, match="no law rotation; there are repeat, waves"):
        check(ir_of(product, product_arguments()), product_arguments(), print, laws=["rotation"])


@pytest.mark.parametrize("shape", [(), (7,), (5, 6), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("layout", ["tight", *LAYOUTS])
def test_a_placement_keeps_values_and_sees_writes_around_them(layout, shape):
    values = numbers(*shape)
    placed = place(values, layout, np.nan)
    np.testing.assert_array_equal(placed.view, values)
    placed.view[...] = 3
    assert placed.pads_are_intact
    placed.buffer[-1] = 0
    assert not placed.pads_are_intact
