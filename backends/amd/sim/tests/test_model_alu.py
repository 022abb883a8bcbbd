"""Every VALU and SALU instruction against its Python model: all encodings, modifiers, modes and masks."""

from __future__ import annotations

import re
import zlib
from functools import lru_cache

import numpy as np
import pytest

from warpwave.backends.amd import sim
from warpwave.backends.amd.sim import _sim

from . import _cases, _special
from ._compile import TARGETS
from ._legal import legal
from ._operands import Case, Operands, expected, kernel, simulate
from ._pools import operands_for
from .model.machine import Spec
from .model.table import table
from .model.valu_float import APPROXIMATE

QUICK = 14


def cases_of(name: str, spec: Spec, target: str) -> list[Case]:
    if spec.flags & {"whole", "special"}:
        return _special.special_cases(name, spec)
    if name.startswith("v_div_f"):
        # Constants are far from the tame numbers that these steps of a division expect.
        return [c for c in _cases.vector_cases(name, spec, target) if not re.search(r", [-\d]", c.text)]
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
    wrong = (got != want) & ~same_nan(table(target)[name], case, got, want) & ~same_zero(case, got, want)
    if name.startswith("v_ashr_pk"):
        wrong &= (got ^ want) & 0xFFFF != 0  # the ISA assigns the low half and is silent on the other
    if not wrong.any():
        return None
    slot, group, lane = np.argwhere(wrong)[0]
    sources = [f"{operands.vectors[group, i, lane]:#010x}" for i in range(6)]
    return (
        f"{case}: slot {slot}, lane {lane}: got {got[slot, group, lane]:#x}, want {want[slot, group, lane]:#x}"
        f" ({wrong.sum()} of {wrong.size}); v8.. = {sources}"
    )


NAN_MASKS = {"f32": (0x7F800000, 0x7FFFFFFF), "f16": (0x7C00, 0x7FFF), "bf16": (0x7F80, 0x7FFF)}


def nan_words(words: np.ndarray, kind: str) -> np.ndarray:
    infinity, magnitude = NAN_MASKS[kind]
    return (words & magnitude) > infinity


def same_nan(spec: Spec, case: Case, got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Arithmetic may return any NaN: the ISA does not say whose sign and payload survive."""
    name = case.text.split()[0]
    kind = spec.dst[0] if spec.dst else ""
    if kind == "f64" or name.startswith(("v_max_f64", "v_min_f64")):
        both = nan_words(got[1], "f32") & nan_words(want[1], "f32")
        return np.broadcast_to(both, got.shape) & (np.arange(got.shape[0])[:, None, None] < 2)
    if "dst_sel:" in case.text and "dst_sel:DWORD" not in case.text:
        return (
            same_halves("f16", got, want)
            if "dst_sel:WORD" in case.text and "f16" in name
            else np.zeros(got.shape, bool)
        )
    if "_bf8_f" in name or "_bf8_bf16" in name:
        return same_bf8(got, want)
    result = result_format(name, kind)
    if result == "f32":
        return nan_words(got, "f32") & nan_words(want, "f32")
    return same_halves(result, got, want) if result else np.zeros(got.shape, bool)


def same_bf8(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """e5m2 has three NaN codes of each sign, and the ISA does not choose."""
    alike = np.ones(got.shape, bool)
    for shift in range(0, 32, 8):
        a, b = (got >> shift) & 0x7F, (want >> shift) & 0x7F
        alike &= ((got ^ want) >> shift & 0xFF == 0) | ((a > 0x7C) & (b > 0x7C))
    return alike


def result_format(name: str, kind: str) -> str:
    """The float format of a result, "" for other results."""
    if found := re.match(r"v_cvt_scalef32_(?:pk32_|pk_)?(f32|f16|bf16)_", name):
        return found[1]
    if kind in ("f32", "f16", "h16", "bf16"):
        return "f16" if kind == "h16" else kind
    for part, result in (
        ("cvt_pk_f32", "f32"),
        ("cvt_pk_bf16", "bf16"),
        ("cvt_sr_f16", "f16"),
        ("cvt_sr_bf16", "bf16"),
        ("mixlo_f16", "f16"),
        ("mixhi_f16", "f16"),
    ):
        if part in name:
            return result
    plain = re.sub(r"_(e32|e64|sdwa|dpp)$", "", name)
    return plain[-3:] if plain.endswith(("_f16", "_f32")) and not plain.startswith(("v_cmp", "v_cvt_pk_u8")) else ""


def same_halves(kind: str, got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """As above for results in 16-bit halves; the other half must agree in full."""
    alike = np.ones(got.shape, bool)
    for shift in (0, 16):
        a, b = (got >> shift) & 0xFFFF, (want >> shift) & 0xFFFF
        alike &= (a == b) | (nan_words(a, kind) & nan_words(b, kind))
    return alike


def same_zero(case: Case, got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """A sum that cancels is -0 when rounding down; the model's sums do not know the mode."""
    down = case.mode is not None and (case.mode & 3 == 2 or case.mode >> 2 & 3 == 2)
    halves = "_f16" in case.text
    zero = (got | want) & (0x7FFF7FFF if halves else 0x7FFFFFFF) == 0
    other = halves & ((got ^ want) & 0x7FFF7FFF == 0) & (((got & 0xFFFF) & 0x7FFF == 0) | (got >> 16 & 0x7FFF == 0))
    return (zero | other) if down else np.zeros(got.shape, bool)


EXACT = sorted({name for target in TARGETS for name in legal_cases(target)} - set(APPROXIMATE))


EXACT = [name for name in EXACT if name in _sim.mnemonics()]


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
