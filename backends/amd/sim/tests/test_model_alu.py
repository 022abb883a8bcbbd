"""Every VALU and SALU instruction against its Python model: all encodings, modifiers, modes and masks."""

from __future__ import annotations

import zlib
from functools import lru_cache

import numpy as np
import pytest

from warpwave.backends.amd import sim

from . import _cases, _special
from ._compile import TARGETS
from ._legal import legal
from ._operands import Case, Operands, expected, kernel, simulate
from ._pools import operands_for
from .model.machine import Spec
from .model.table import table
from .model.valu_float import APPROXIMATE

QUICK = 24


def cases_of(name: str, spec: Spec, target: str) -> list[Case]:
    if "whole" in spec.flags:
        return _special.special_cases(name, spec)
    return _cases.scalar_cases(name, spec) if name.startswith("s_") else _cases.vector_cases(name, spec, target)


@lru_cache
def legal_cases(target: str) -> dict[str, list[Case]]:
    """All variants that the assembler accepts, by mnemonic; instructions of the other target drop out."""
    flat = [(name, case) for name, spec in table(target).items() for case in cases_of(name, spec, target)]
    answers = legal([case.text for _, case in flat], target)
    found: dict[str, list[Case]] = {}
    for (name, case), good in zip(flat, answers, strict=True):
        if good:
            found.setdefault(name, []).append(case)
    return found


def sample(cases: list[Case], count: int) -> list[Case]:
    """The plain forms and an even, repeatable choice of the others."""
    if len(cases) <= count:
        return cases
    ranked = sorted(cases[3:], key=lambda c: zlib.crc32(repr(c).encode()))
    return cases[:3] + ranked[: count - 3]


def differences(name: str, cases: list[Case], operands: Operands, target: str) -> list[str]:
    program = sim.load(kernel(cases, operands).text(), target=target)
    results = simulate(program, cases, operands)
    return [m for c, r in zip(cases, results, strict=True) if (m := mismatch(name, c, r, operands, target))]


def mismatch(name: str, case: Case, got: np.ndarray, operands: Operands, target: str) -> str | None:
    want = expected(case, operands, table(target))
    wrong = (got != want) & ~same_nan(table(target)[name], case, got, want)
    if not wrong.any():
        return None
    slot, group, lane = np.argwhere(wrong)[0]
    sources = [f"{operands.vectors[group, i, lane]:#010x}" for i in range(6)]
    return (
        f"{case}: slot {slot}, lane {lane}: got {got[slot, group, lane]:#x}, want {want[slot, group, lane]:#x}"
        f" ({wrong.sum()} of {wrong.size}); v8.. = {sources}"
    )


def same_nan(spec: Spec, case: Case, got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Arithmetic may return any quiet NaN: the ISA does not say whose payload survives."""
    same = np.zeros(got.shape, bool)
    kind = spec.dst[0] if spec.dst else ""
    text = case.text
    if kind == "f32" or ("_pk_" in text and "_f32" in text.split()[0]) or "mix_f32" in text:
        nan = (got & 0x7FC00000 == 0x7FC00000) & (want & 0x7FC00000 == 0x7FC00000)
        return nan if "sdwa" not in text else same
    if kind == "f64":
        high = (got[1] & 0x7FF80000 == 0x7FF80000) & (want[1] & 0x7FF80000 == 0x7FF80000)
        same[0], same[1] = high, high
    return same | half_nans(kind, text, got, want)


def half_nans(kind: str, text: str, got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """As above for results in 16-bit halves; the other half must agree in full."""
    if not (kind in ("f16", "h16") or "_f16" in text.split()[0]):
        return np.zeros(got.shape, bool)
    alike = []
    for shift in (0, 16):
        a, b = (got >> shift) & 0xFFFF, (want >> shift) & 0xFFFF
        alike.append((a == b) | ((a & 0x7E00 == 0x7E00) & (b & 0x7E00 == 0x7E00)))
    return alike[0] & alike[1]


EXACT = sorted({name for target in TARGETS for name in legal_cases(target)} - set(APPROXIMATE))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", EXACT)
def test_instruction_agrees_with_its_model(name, target):
    cases = legal_cases(target).get(name)
    if cases is None:
        refused = (cases_of(name, table(target)[name], target) if name in table(target) else [Case(f"{name} v0, v1")])[
            0
        ]
        text = kernel([refused], operands_for(name, target)).text()
        with pytest.raises(sim.LoadError):
            sim.load(text, target=target)
        return
    assert not differences(name, sample(cases, QUICK), operands_for(name, target), target)


@pytest.mark.sweep
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", EXACT)
def test_every_variant_of_an_instruction(name, target):
    cases = legal_cases(target).get(name, [])
    for start in range(0, len(cases), 100):
        operands = operands_for(name, target, seed=start)
        assert not differences(name, cases[start : start + 100], operands, target)
