"""The ledger's PTX instructions assemble for each target that has them; on a GPU they give the predicted bits."""

from __future__ import annotations

import pytest

from warpwave.backends.nvidia.runtime import devices
from warpwave.conformance.probes import PROBES, InstructionProbe
from warpwave.conformance.ptx import compiled, confirm_all, main, source

ARCH = {"nvidia:sm80": "sm_80", "nvidia:sm89": "sm_89", "nvidia:sm90a": "sm_90a"}
TEXTS = sorted({(t, side) for p in PROBES.values() if isinstance(p, InstructionProbe) for side, t in p.texts.items() if side in ARCH})  # fmt: skip


@pytest.mark.parametrize(("text", "side"), TEXTS, ids=str)
def test_instructions_assemble(text, side):
    assert compiled(text, ARCH[side])[:4] == b"\x7fELF"


def test_a_16_bit_result_is_widened():
    assert "mov.b32 %0, {half, 0};" in source("cvt.rn.f16.f32 {d}, {a};")
    assert '"ex2.approx.f32 %0, %1;"' in source("ex2.approx.f32 {d}, {a};")


def test_without_a_gpu_it_says_so(capsys, monkeypatch):
    monkeypatch.setattr(devices, "devices", tuple)
    assert main() == 2
    assert "no NVIDIA GPU" in capsys.readouterr().err


@pytest.mark.gpu
def test_the_gpu_gives_the_predicted_bits():
    device = next(d for d in devices.devices() if d.target is not None)
    outcomes = confirm_all(device)
    assert outcomes
    assert not [str(o) for o in outcomes if not o.holds]
