"""Seeded defects: each changes the backend while it is in, and only then; the quick profile notices them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import warpwave as ww
from warpwave.backends.amd import build, compilation
from warpwave.backends.amd.arch import TARGETS
from warpwave.conformance.defects import DEFECTS, Defect, hunt
from warpwave.kernels.gemm import gemm

ROOT = Path(__file__).parent.parent.parent
QUICK_SHARE = 0.95
# One of each kind, and a small case that notices it.
FEW = {
    "comparison-off-by-one": "ops:comparisons:f32",
    "half-away": "ops:rounding:f32",
    "lane-map-2": "ops:rows:f32",
    "last-block-lost": "ops:loads:f32",
}
BY_NAME = {d.name: d for d in DEFECTS}


@ww.kernel
def mixed(a: ww.gl, b: ww.gl, c: ww.gl, d: ww.gl, *, B=64):
    """A product, a reduction and masked elements: what the edits look for."""
    m, n = ww.grid(ww.cdiv(c.rows, B), ww.cdiv(c.cols, B))
    acc = ww.zeros(ww.rt[ww.f32, B, B])
    for k in ww.pipeline(ww.cdiv(a.cols, B)):
        acc = ww.mma_ABt(acc, ww.load(a, (m, k), ww.st[a.dtype, B, B]), ww.load(b, (n, k), ww.st[b.dtype, B, B]))
    ww.store(c, (m, n), acc)
    ww.store(d, (m,), ww.max(acc, axis=1), axes=(0,))


def built(name: str) -> tuple[str, str]:
    """Source and assembly of the mixed kernel for a target, with every format that it has a product of."""
    sources = []
    for dtype in (ww.bf16, ww.fp8e5m2 if name == "gfx950" else ww.f16):
        a = np.zeros((64, 64), dtype.numpy)
        arguments = {"a": a, "b": a, "c": np.zeros((64, 64), np.float32), "d": np.zeros(64, np.float32)}
        ir = mixed.compile(**arguments, target="reference").ir
        sources.append(compilation.lowered(ir, TARGETS[name], {}).built_source)
    return "\n".join(sources), build.compile_to_asm(sources[0], name)


@pytest.fixture(scope="module")
def texts():
    return {name: built(name) for name in TARGETS}


def test_there_are_many_defects_of_all_kinds():
    assert len(DEFECTS) >= 40
    assert len(BY_NAME) == len(DEFECTS)
    kinds = [("rewrite", 25), ("source", 25), ("assembly", 2), ("patches", 4)]
    assert all(sum(bool(getattr(d, kind)) for d in DEFECTS) >= count for kind, count in kinds)


@pytest.mark.parametrize("defect", [d for d in DEFECTS if d.source or d.assembly], ids=lambda d: d.name)
def test_every_edit_finds_its_place(texts, defect):
    """An edit whose place has changed would put nothing in, and its hunt would say nothing."""
    for target in defect.targets:
        source, asm = texts[target.removeprefix("amd:").removesuffix(":sim")]
        for edits, text in ((defect.source, source), (defect.assembly, asm)):
            assert not edits or sum(edit.apply(text)[1] for edit in edits)


def test_a_defect_is_gone_after_its_block():
    a = np.zeros((64, 64), np.float16)
    ir = gemm.compile(a, a, np.zeros((64, 64), np.float32), target="reference").ir
    before = compilation.lowered(ir, TARGETS["gfx942"], {}).built_source
    with BY_NAME["half-away"].injected() as trace:
        inside = compilation.lowered(ir, TARGETS["gfx942"], {}).built_source
    assert trace.changes > 0
    assert "__builtin_roundf" in inside
    assert compilation.lowered(ir, TARGETS["gfx942"], {}).built_source == before


def test_a_sound_backend_is_not_accused():
    """A hunt for nothing finds nothing."""
    assert not hunt(Defect("none", "nothing", ()), cases=["ops:comparisons:f32"]).caught


@pytest.mark.parametrize("name", FEW)
def test_a_few_are_caught(name):
    catch = hunt(BY_NAME[name], cases=[FEW[name]])
    assert catch.caught, catch


@pytest.mark.sweep
def test_the_quick_profile_catches_nearly_all_and_the_full_one_all():
    missed = [d for d in DEFECTS if not hunt(d, "quick").caught]
    assert len(missed) <= (1 - QUICK_SHARE) * len(DEFECTS)
    assert not [d.name for d in missed if not hunt(d, "full").caught]


def test_the_page_lists_every_defect():
    names = re.findall(r"^\| ([a-z0-9-]+) \|", (ROOT / "docs/seeded_defects.md").read_text(), re.MULTILINE)
    assert sorted(n for n in names if n != "defect") == sorted(BY_NAME)
