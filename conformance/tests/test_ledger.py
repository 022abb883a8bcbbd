"""The ledger says what is: every probe evaluated, and every kind of disagreement shown to fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from warpwave.conformance import ledger
from warpwave.conformance.ledger import ENTRIES, check, confirm, explain, load
from warpwave.conformance.ledger_page import page
from warpwave.conformance.probes import NVIDIA, PROBES, SIDES, InstructionProbe


@pytest.fixture(scope="module")
def outcomes():
    return {outcome.name: outcome for outcome in check()}


@pytest.mark.parametrize("name", PROBES)
def test_every_difference_is_listed_and_every_entry_shows(outcomes, name):
    assert outcomes[name].holds, str(outcomes[name])


def test_every_entry_has_a_probe(outcomes):
    assert {e.name for e in ENTRIES} <= set(outcomes)
    assert len(outcomes) == len(PROBES)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_an_entry_is_complete(entry):
    assert set(entry.predictions) <= set(SIDES)
    assert len(entry.predictions) >= 2
    assert len(set(entry.predictions.values())) >= 2
    assert entry.contract in ("within", "unknown", "undefined", "kept out")
    assert entry.why
    assert entry.source
    assert entry.op == PROBES[entry.name].op


def test_both_vendors_are_in_the_ledger():
    both = [e for e in ENTRIES if any("nvidia" in s for s in e.predictions) and any("amd" in s for s in e.predictions)]
    assert len(both) >= 20


def test_what_a_device_gave_and_what_it_must_still_confirm_is_said():
    for entry in ENTRIES:
        for side in entry.predictions:
            probe, basis = PROBES[entry.name], entry.basis(side)
            if basis == "stated":
                assert isinstance(probe, InstructionProbe) or not probe.modelled
            assert (basis == "measured") == (side in entry.measured)
    measured = {e.name for e in ENTRIES if "nvidia:sm90a" in e.measured}
    assert {"rcp-subnormal-result", "add-nan-bits"} <= measured
    assert len(measured) >= 12


def test_instructions_without_an_entry_say_what_all_give():
    listed = {e.name for e in ENTRIES}
    alike = [p for p in PROBES.values() if isinstance(p, InstructionProbe) and p.name not in listed]
    assert len(alike) >= 3
    assert all(len(p.agreed) == len(p.operands) for p in alike)
    assert all(confirm(p.name, "nvidia:sm90a", p.agreed).holds for p in alike)
    assert not any(confirm(p.name, "nvidia:sm90a", (*p.agreed[:-1], 5)).holds for p in alike)


def some(monkeypatch, name):
    """Only one probe, so that a check is quick."""
    monkeypatch.setattr(ledger, "PROBES", {name: PROBES[name]})
    return next(e for e in ENTRIES if e.name == name)


def test_an_unlisted_difference_fails(monkeypatch):
    some(monkeypatch, "cvt-fp8-to-f32")
    (outcome,) = check(entries=())
    assert outcome.status == "unlisted"
    assert str(outcome).startswith("cvt-fp8-to-f32 unlisted on amd:gfx950: predicted 0x7fc00000")


def test_a_difference_that_changed_fails(monkeypatch):
    entry = some(monkeypatch, "cvt-fp8-to-f32")
    wrong = replace(entry, predictions={**entry.predictions, "amd:gfx950": (0, 0, 0, 0)})
    (outcome,) = check(entries=[wrong])
    assert (outcome.status, outcome.side) == ("changed", "amd:gfx950")


def test_a_side_that_the_entry_leaves_out_fails(monkeypatch):
    entry = some(monkeypatch, "cvt-fp8-to-f32")
    partial = replace(entry, predictions={s: b for s, b in entry.predictions.items() if s != "amd:gfx950"} | {"x": ()})
    (outcome,) = check(entries=[partial])
    assert (outcome.status, outcome.side) == ("changed", "amd:gfx950")


def test_a_difference_that_vanished_fails(monkeypatch):
    entry = some(monkeypatch, "cvt-fp8-to-f32")
    same = replace(entry, predictions=dict.fromkeys(entry.predictions, (1,)))
    assert [o.status for o in check(entries=[same])] == ["vanished"]


def test_an_entry_without_a_probe_fails(monkeypatch):
    entry = some(monkeypatch, "cvt-fp8-to-f32")
    assert check(entries=[entry, replace(entry, name="gone")])[0].status == "without probe"


def test_a_device_confirms_or_contradicts():
    entry = next(e for e in ENTRIES if e.name == "rcp-subnormal-result")
    assert confirm(entry.name, "nvidia:sm90a", entry.predictions["nvidia:sm90a"]).holds
    flushed = confirm(entry.name, "nvidia:sm90a", (0, 0x80000000, 0x800000))
    assert flushed.status == "changed"
    assert confirm("round-half", "nvidia:sm90a", PROBES["round-half"].evaluate("reference")).holds
    assert confirm("round-half", "nvidia:sm90a", (1,)).status == "unlisted"
    assert confirm("divide-by-zero", "nvidia:sm90a", (7, 7, 7)).holds


def test_a_difference_is_explained():
    assert "13 fraction bits" in explain("mma", "fp8e4m3", "nvidia:sm90a", "amd:gfx950:sim")
    assert explain("mma", "fp8e4m3", "nvidia:sm90a", "nvidia:sm89") is None
    assert explain("cast", "f32", "nvidia:sm90a", "amd:gfx950") is None


def test_sides_of_tensor_cores_are_modelled_and_those_of_hopper_measured():
    """What a record of an H200 gave equals what the models predicted."""
    products = [e for e in ENTRIES if e.op == "mma"]
    bases = {(e.basis(side), side) for e in products for side in e.predictions if side in NVIDIA}
    assert bases == {("modelled", "nvidia:sm80"), ("modelled", "nvidia:sm89"), ("measured", "nvidia:sm90a")}
    for entry in products:
        assert PROBES[entry.name].evaluate("nvidia:sm90a") == entry.predictions["nvidia:sm90a"]


def test_entries_are_read_from_text():
    text = '{"a": {"title": "t", "op": "add", "dtypes": ["f32"], "contract": "within", "why": "w", "source": "s", "predictions": {"reference": ["0x1"], "amd:gfx942": ["0x2"]}}}'
    (entry,) = load(text)
    assert entry.predictions == {"reference": (1,), "amd:gfx942": (2,)}


def test_the_page_is_fresh():
    path = Path(__file__).parent.parent.parent / "docs/ledger.md"
    assert path.read_text() == page(), "run: python -m warpwave.conformance.ledger_page > docs/ledger.md"
