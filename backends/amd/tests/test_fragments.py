from __future__ import annotations

import numpy as np
import pytest

from warpwave.backends.amd.arch import TARGETS, Mfma
from warpwave.backends.amd.fragments import accumulator, operand_a, operand_b

ALL = [pytest.param(m, id=f"{t.name}-{m.mnemonic}-{m.a}-{m.b}") for t in TARGETS.values() for m in t.mfma]


def published_operand(m: Mfma, lane: int, item: int) -> tuple[int, int]:
    """(index, k) from the shape tables of the ISA guides, written per shape."""
    extent = m.m
    if m.runs == 2:  # 8-bit f8f6f4: two 16-byte runs
        group = lane // extent
        return lane % extent, (item // 16) * (m.k // 2) + 16 * group + item % 16
    per_lane = m.k // (64 // extent)
    return lane % extent, (lane // extent) * per_lane + item


def published_accumulator(m: Mfma, lane: int, item: int) -> tuple[int, int]:
    if m.m == 32:
        return 8 * (item // 4) + 4 * (lane // 32) + item % 4, lane % 32
    return 4 * (lane // 16) + item, lane % 16


@pytest.mark.parametrize("m", ALL)
def test_operands_equal_the_published_tables(m):
    a, b = operand_a(m), operand_b(m)
    for lane in range(64):
        for item in range(a.items):
            assert (a.rows[lane, item], a.cols[lane, item]) == published_operand(m, lane, item)
            assert (b.cols[lane, item], b.rows[lane, item]) == published_operand(m, lane, item)


@pytest.mark.parametrize("m", ALL)
def test_accumulator_equals_the_published_table(m):
    acc = accumulator(m)
    for lane in range(64):
        for item in range(acc.items):
            assert (acc.rows[lane, item], acc.cols[lane, item]) == published_accumulator(m, lane, item)


@pytest.mark.parametrize("m", ALL)
def test_every_element_is_held_exactly_once(m):
    for fragment, shape in ((operand_a(m), (m.m, m.k)), (operand_b(m), (m.k, m.n)), (accumulator(m), (m.m, m.n))):
        seen = np.zeros(shape, int)
        np.add.at(seen, (fragment.rows, fragment.cols), 1)
        assert (seen == 1).all()


def test_multi_block_forms_follow_the_general_rule():
    """Not in the tables (no tile op needs them), but the formula covers them: 16x16x4 with 4 blocks."""
    m = Mfma("v_mfma_f32_16x16x4_4b_f16", "", "f16", "f16", "f32", 16, 16, 4, 8, blocks=4)
    a, acc = operand_a(m), accumulator(m)
    for lane in range(64):
        assert (a.rows[lane] == lane % 16).all()
        assert (a.block[lane] == lane // 16).all()
        assert (a.cols[lane] == np.arange(4)).all()
        for item in range(16):
            expected = (item % 4 + 4 * (lane // 16), lane % 16, item // 4)
            assert (acc.rows[lane, item], acc.cols[lane, item], acc.block[lane, item]) == expected


def test_published_peaks():
    """AMD's dense peaks in TFLOP/s = FLOP/clock/CU x CUs x clock."""

    def peak(target: str, chip: int, dtype: str) -> float:
        t = TARGETS[target]
        best = max(m.flops_per_clock for m in t.mfma if m.a == m.b == dtype)
        return best * t.chips[chip].cus * t.chips[chip].clock * 1e-3

    assert peak("gfx942", 0, "bf16") == pytest.approx(1307.4, abs=0.1)
    assert peak("gfx942", 0, "fp8e4m3fnuz") == pytest.approx(2614.9, abs=0.1)
    assert peak("gfx942", 0, "f32") == pytest.approx(163.4, abs=0.1)
    assert peak("gfx950", 1, "bf16") == pytest.approx(2516.6, abs=0.1)
    assert peak("gfx950", 1, "fp8e4m3") == pytest.approx(5033.2, abs=0.1)


def test_occupancy_follows_the_register_and_lds_granules():
    t = TARGETS["gfx950"]
    limits = {64: 8, 65: 7, 72: 7, 80: 6, 96: 5, 128: 4, 168: 3, 256: 2, 257: 1, 512: 1}
    assert {r: t.waves_per_simd(r) for r in limits} == limits
    assert t.groups_per_cu(81920) == 2
    assert t.groups_per_cu(81921) == 1
    assert TARGETS["gfx942"].groups_per_cu(32769) == 1
