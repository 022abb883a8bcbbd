"""The report says what the records say: every op in the grid, every failure by name, in valid HTML."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from warpwave.conformance.records import Record, Result
from warpwave.conformance.report import write_report
from warpwave.conformance.report.facts import gather
from warpwave.conformance.report.page import tightness_rows
from warpwave.conformance.report.svg import Dot, dot_plot, histogram
from warpwave.conformance.runners import Outcome, Status, run_case
from warpwave.conformance.suite import make_case
from warpwave.conformance.verdicts import Level

CASES = ("ops:functions:f32", "ops:rows:i32", "program:4")
VOID = {"meta", "br"}


@pytest.fixture(scope="module")
def record():
    results = [Result.of(o) for c in CASES for o in run_case(make_case(c), ["reference"])]
    exp = results[0].outcome.verdicts[0]
    wrong = replace(exp, level=Level.VIOLATION, beyond=1, ratio=3.0, error=3.0, bound=1.0, bit_exact=0)
    bad = replace(results[0].outcome, target="x:<chip>", verdicts=(wrong, *results[0].outcome.verdicts[1:]))
    results.append(Result(bad, results[0].outputs))
    results.append(Result(Outcome("program:4", "x:<chip>", Status.REFUSED, problem="no instruction for 8 bits")))
    stored = {c: make_case(c).stored for c in CASES}
    return Record(
        {"profile": "quick", "seed": 0}, {"python": "3", "target x:<chip>": "a board"}, tuple(results), stored
    )


class Checker(HTMLParser):
    """Every element is closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.boxes = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        classes = dict(attrs).get("class") or ""
        if "box" in classes.split() and "title" in dict(attrs):
            self.boxes.append((classes.split()[1], dict(attrs)["title"]))

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_self_contained(record, tmp_path):
    html, text = write_report([record], tmp_path / "new" / "report.html")
    page = html.read_text()
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert not any(word in page for word in ("http://", "https://", "<script", "src="))
    assert "x:<chip>" not in page
    assert "x:&lt;chip&gt;" in page
    assert text.read_text().startswith("# Warpwave conformance")


def test_every_op_is_a_box_of_its_level(record, tmp_path):
    html, _ = write_report([record], tmp_path / "report.html")
    checker = Checker()
    checker.feed(html.read_text())
    kinds = dict(reversed([(title.split(":")[0], kind) for kind, title in checker.boxes if "x" not in title[:1]]))
    assert kinds["exp f32 on reference"] == "bit-exact"
    assert kinds["reduce_sum i32 on reference"] == "bit-exact"
    assert any(kind == "violation" and title.startswith("exp f32 on x") for kind, title in checker.boxes)
    labels = make_case("ops:functions:f32").labels
    assert {f"{op} {dtype} on reference" for op, dtype in labels.values()} <= kinds.keys()


def test_failures_and_refusals_are_named(record, tmp_path):
    for path in write_report([record], tmp_path / "report.html"):
        assert "ops:functions:f32" in path.read_text()
    assert "no instruction for # bits" in (tmp_path / "report.html").read_text()


def test_facts_count_what_is_there(record):
    facts = gather([record])
    assert [s.target for s in facts.summaries] == ["reference", "x:<chip>"]
    assert [(s.cases, s.refused, s.levels.get(Level.VIOLATION, 0)) for s in facts.summaries] == [(3, 0, 0), (2, 1, 1)]
    assert len(facts.bad) == 1
    assert facts.pairs.differences
    assert next(iter(tightness_rows(facts))) == "exp f32"


def test_plots_place_the_bound_and_clip_what_is_far_out():
    plot = dot_plot({"a <b>": [Dot(0, 1e-9, "tiny"), Dot(1, 50.0, "far")]})
    assert "a &lt;b&gt;" in plot
    assert plot.count("<circle") == 2
    bars = histogram({"empty": [], "x": [0.0, 0.99, 1.0]})
    assert "empty" not in bars
    assert 'fill="var(--t1)"' in bars  # the second target's colour in every plot
    assert "2 outputs from 0.95 to 1" in bars
