"""`warpwave conformance` from end to end on the reference: run, go on, compare, against, merge, report, show."""

from __future__ import annotations

import runpy

import pytest

from warpwave.conformance.records import read_record
from warpwave.tiles.cli import main

RUN = ("run", "--targets", "reference", "--profile", "soak", "--programs", "3", "--jobs", "1", "--out")


def conformance(*arguments):
    return main(["conformance", *map(str, arguments)])


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "r.safetensors"
    assert conformance(*RUN, path) == 0
    return path


def test_a_run_leaves_a_record_and_no_journal(record):
    assert [r.outcome.case for r in read_record(record).results] == ["program:0", "program:1", "program:2"]
    assert not record.with_name("r.safetensors.journal").exists()


def test_a_run_without_time_goes_on_later(tmp_path, capsys):
    path = tmp_path / "r.safetensors"
    assert conformance(*RUN, path, "--time-limit", 0) == 0
    assert "the same command goes on" in capsys.readouterr().out
    assert not read_record(path).complete
    assert conformance(*RUN, path) == 0
    assert read_record(path).complete


def test_comparing_a_record_with_itself_finds_no_difference(record, capsys):
    assert conformance("compare", record, record) == 0
    assert "violation" in capsys.readouterr().out


def test_records_with_nothing_in_common_are_no_agreement(record, tmp_path):
    other = tmp_path / "o.safetensors"
    assert conformance(*RUN, other, "--only", "program:2") == 0
    assert conformance("compare", other, record) == 0
    assert conformance(*RUN[:-1], "--seed", 1, "--out", tmp_path / "p") == 0
    assert conformance("compare", tmp_path / "p", record) == 2


def test_a_record_is_run_again_here(record, capsys):
    assert conformance("against", record, "--targets", "reference", "--limit", 2) == 0
    assert "only in the first record: 1 cases" in capsys.readouterr().out


def test_merging_and_reporting(record, tmp_path):
    assert conformance("merge", record, record, "--out", tmp_path / "m") == 0
    assert len(read_record(tmp_path / "m").results) == 3
    assert conformance("report", record, tmp_path / "m", "--out", tmp_path / "r.html") == 0
    assert (tmp_path / "r.html").exists()
    assert (tmp_path / "r.md").exists()


def test_a_case_is_shown_as_a_script_that_runs(tmp_path, capsys):
    assert conformance("show", "program:2") == 0
    script = tmp_path / "script.py"
    script.write_text(capsys.readouterr().out)
    runpy.run_path(str(script))
    assert "agrees" in capsys.readouterr().out


def test_what_does_not_fail_is_not_shortened(capsys):
    assert conformance("show", "program:2", "--shrink") == 2
    assert "does not fail" in capsys.readouterr().out
    assert conformance("show", "kernel:softmax:0") == 0
    assert "warpwave check warpwave.kernels.softmax:softmax" in capsys.readouterr().out


def test_user_errors_have_status_2(tmp_path, capsys):
    (tmp_path / "x").write_text("?")
    for arguments in (["compare", tmp_path / "x", tmp_path / "x"], ["run", "--targets", "nowhere"], ["show", "what"]):
        assert conformance(*arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert sum(line.split(":")[0].endswith("Error") for line in lines) == 3
