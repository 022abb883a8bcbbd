"""The targets' wait states are those that the simulator's rules are tested for, instruction by instruction."""

from __future__ import annotations

import pytest

from warpwave.backends.amd.arch import GFX942, GFX950
from warpwave.backends.amd.sim.tests.test_spacing_rules import RULES

STATES = {why: states for why, _, _, *states in RULES}


@pytest.mark.parametrize(("index", "target"), [(0, GFX942), (1, GFX950)], ids=["gfx942", "gfx950"])
def test_wait_states(index, target):
    table = target.hazards
    for passes in (2, 4, 8, 16):
        assert table.matrix_to_vector[passes] == STATES[f"xdl{passes} to valu"][index]
    for passes in (4, 8):
        assert table.matrix_to_factor[passes] == STATES[f"xdl{passes} to A"][index]
        assert table.matrix_to_overlap[passes] == STATES[f"xdl{passes} to overlapping C"][index]
    for passes in (2, 4):
        assert table.matrix_to_same[passes] == STATES[f"xdl{passes} to same C"][index]
    assert table.vector_to_matrix == STATES["valu to mfma"][index]
    assert table.transcendental_to_vector == STATES["trans to valu"][index]
    assert table.reach == max(table.matrix_to_vector.values())
