"""Orders of depth: whatever is read together, each instruction sums over its own part of the depth, once."""

from __future__ import annotations

import pytest

from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.layout import accumulator_layout, operand_layout
from warpwave.backends.amd.lower.depth import can_transpose, natural_order, register_order
from warpwave.tiles.dtypes import BY_NAME

CASES = [(name, mfma) for name, target in TARGETS.items() for mfma in target.mfma]
IDS = [f"{name}-{m.mnemonic}-{m.a}-{m.b}" for name, m in CASES]


def depths(order, mfma):
    """For each step, the depth of every lane's items that differ in the group of lanes only."""
    lanes = order.of_lanes[:: mfma.m]
    return [sorted(int(lane) + k for lane in lanes for k in step) for step in order.items]


@pytest.mark.parametrize(("target", "mfma"), CASES, ids=IDS)
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 8])
def test_the_depth_is_summed_once(target, mfma, steps):
    dtype = BY_NAME[mfma.a]
    order = natural_order(mfma, steps * mfma.k, dtype)
    found = depths(order, mfma)
    assert len(found) == steps
    assert sorted(k for step in found for k in step) == list(range(steps * mfma.k))
    assert order.reach == steps * mfma.k
    widest = max(1, 16 // (dtype.nbytes * mfma.k * mfma.m // 64))
    expected = max(n for n in (1, 2, 4) if n <= widest and steps % n == 0) if mfma.runs == 1 else 1
    assert order.together == expected
    assert order.run(dtype) * dtype.nbytes == min(16, expected * dtype.nbytes * mfma.k * mfma.m // 64 // mfma.runs)


@pytest.mark.parametrize(("target", "mfma"), CASES, ids=IDS)
def test_operands_in_registers_have_the_natural_order(target, mfma):
    dtype, depth = BY_NAME[mfma.a], 4 * mfma.k
    layout = accumulator_layout((2 * mfma.m, 2 * mfma.n), 1, (1, 1), mfma.m)
    order = register_order(mfma, operand_layout((2 * mfma.m, depth), layout, mfma, dtype.nbytes), layout, dtype)
    assert order is not None
    assert sorted(k for step in depths(order, mfma) for k in step) == list(range(depth))
    if mfma.runs == 1:
        assert order == natural_order(mfma, depth, dtype)


@pytest.mark.parametrize(("target", "mfma"), CASES, ids=IDS)
def test_an_accumulator_is_an_operand_as_it_lies(target, mfma):
    """attention's second product: its depth is the first one's columns."""
    dtype = BY_NAME[mfma.a]
    layout = accumulator_layout((mfma.m, 2 * mfma.k), 1, (1, 1), mfma.m)
    order = register_order(mfma, layout, layout, dtype)
    if order is not None:
        assert sorted(k for step in depths(order, mfma) for k in step) == list(range(layout.extent[1]))


def test_which_orders_transposing_reads_serve():
    gfx942, gfx950 = TARGETS["gfx942"], TARGETS["gfx950"]
    for name, mfma in CASES:
        dtype = BY_NAME[mfma.a]
        serves = can_transpose(TARGETS[name], natural_order(mfma, 2 * mfma.k, dtype), dtype)
        assert serves == (name == "gfx950" and dtype.bits in (8, 16))
    assert "ds_read_b64_tr_b16" not in gfx942.lds
    assert "ds_read_b64_tr_b8" in gfx950.lds
