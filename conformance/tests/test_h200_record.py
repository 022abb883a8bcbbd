"""A real cross-vendor check without a GPU: what an H200 computed, against compiled AMD code on the simulator."""

from __future__ import annotations

import pytest

from warpwave.conformance import demo
from warpwave.conformance.records import compare
from warpwave.conformance.records.against import rerun
from warpwave.conformance.verdicts import Level

pytestmark = pytest.mark.skipif(not demo.RECORD.exists(), reason="no record of an H200 is committed")
FEW = 10


def differences(target, limit):
    record = demo.h200_record()
    found = compare(record, rerun(record, [target], limit))
    assert not found.violations
    assert not found.surprises
    return found


@pytest.mark.parametrize("target", ["amd:gfx942:sim", "amd:gfx950:sim"])
def test_a_few_cases_agree(target):
    found = differences(target, FEW)
    assert found.count(Level.BIT_EXACT) > 0
    assert "this version makes other inputs" not in found.left_out


@pytest.mark.sweep
@pytest.mark.parametrize("target", ["amd:gfx942:sim", "amd:gfx950:sim"])
def test_all_cases_agree(target):
    assert len(differences(target, 0).differences) > 500


def test_the_record_is_of_a_full_run_and_small():
    record = demo.h200_record()
    assert record.run["profile"] == "full"
    assert demo.RECORD.stat().st_size < 16 * 2**20
    assert [t.split(":")[0] for t in record.targets] == ["nvidia"]
    assert not [r.outcome.case for r in record.results if r.outcome.bad]
