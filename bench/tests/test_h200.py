"""The measuring programs without a GPU: rows, robustness, verdicts, and the side-by-side timing on a fake clock."""

from __future__ import annotations

import dataclasses
import json
import types
from pathlib import Path

import pytest

from warpwave.bench.h200 import check, environment, report, run, timing, upstream
from warpwave.bench.h200.case import Case
from warpwave.bench.h200.rows import Row, all_rows
from warpwave.tiles.runtime.timing import FEWEST, MOST, WARM_UP

ROWS = list(all_rows())


class FakeEvent:
    def __init__(self, clock):
        self.clock = clock

    def record(self):
        self.at = self.clock.now

    def elapsed_time(self, other):
        return other.at - self.at


class FakeTorch(types.SimpleNamespace):
    """A device whose work takes the time that it is told."""

    def __init__(self):
        super().__init__(int32="int32")
        self.now, self.flushes = 0.0, 0
        self.cuda = types.SimpleNamespace(
            Event=lambda enable_timing: FakeEvent(self), synchronize=lambda: None, empty_cache=lambda: None
        )

    def empty(self, *shape, **how):
        def flush():
            self.flushes += 1
            self.now += 0.05

        return types.SimpleNamespace(zero_=flush)

    def work(self, ms):
        def run():
            self.now += ms

        return run


def test_every_row_of_the_issue_is_there():
    names = [r.name for r in ROWS]
    assert len(names) == len(set(names))
    for size in (1024, 2048, 4096, 8192, 16384):
        assert f"gemm bf16 {size}" in names
    for width in (64, 128):
        for mask in ("full", "causal"):
            for n in (1024, 4096, 16384):
                for heads in ("16/16", "64/8"):
                    assert f"attention D={width} {mask} N={n} H={heads}" in names
    assert {"gemm fp8 4096", "gemm fp8 8192", "gemm bf16 1000x999x1001"} <= set(names)
    assert sum(r.at_least == 1.0 and r.aim == 1.2 for r in ROWS) == 4
    assert all(r.neighbour in names for r in ROWS if r.neighbour)


def test_functions_are_timed_in_turn_with_a_flush_before_each():
    torch = FakeTorch()
    found = timing.measure(torch, {"ours": torch.work(1.0), "peer": torch.work(2.0)}, budget_ms=60)
    assert found["ours"].median == pytest.approx(1.0)
    assert found["peer"].median == pytest.approx(2.0)
    assert found["ours"].runs == found["peer"].runs == 18  # 60 ms of 1 + 2 and twice 0.1
    assert torch.flushes == 2 * 18 + 2 * 3 + 2 * WARM_UP


def test_a_short_function_is_run_at_most_so_often():
    torch = FakeTorch()
    assert timing.measure(torch, {"f": torch.work(0.001)}, 1000)["f"].runs == MOST
    assert timing.measure(torch, {"f": torch.work(500.0)}, 100)["f"].runs == FEWEST


def row_of(ours, peers, error=0.5, **work):
    case = Case(ours, peers, lambda: error, **(work or {"flops": 2e9}))
    return Row("row", lambda torch: case, 0.95, 1.05)


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr(run, "clocks", lambda: "1980 MHz")


def test_the_better_peer_is_compared_with():
    torch = FakeTorch()
    peers = {"slow": torch.work(3.0), "fast": torch.work(1.1)}
    found = run._measured(torch, row_of(torch.work(1.0), peers), 4.0, compiled=True)
    assert (found.peer, found.unit) == ("fast", "TFLOP/s")
    assert found.ratio == pytest.approx(1.1)
    assert found.rate == pytest.approx(2e9 / 1e-3 / 1e12)
    assert report.verdict(found) == "aim"


def test_bytes_are_compared_with_a_copy():
    torch = FakeTorch()
    found = run._measured(torch, row_of(torch.work(1.0), {}, bytes_moved=3e9), 4.0, compiled=True)
    assert found.rate == pytest.approx(3.0)
    assert found.share_of_copy == pytest.approx(0.75)
    assert report.verdict(found) == "no peer"
    assert "75% of copy" in report.line(found)


@pytest.mark.parametrize("error", [1.5, float("nan"), float("inf")])
def test_a_wrong_result_is_no_measurement(error):
    torch = FakeTorch()
    found = run._measured(torch, row_of(torch.work(1.0), {}, error), 4.0, compiled=True)
    assert "a wrong result" in found.problem
    assert not found.times
    assert report.verdict(found) == "failed"


def broken(*_):
    raise RuntimeError("no kernel | here")


def test_failures_stay_in_their_row():
    torch = FakeTorch()
    assert "RuntimeError: no kernel" in run._measured(torch, row_of(broken, {}), 4.0, compiled=True).problem
    peers = {"cudnn": broken, "flash2": torch.work(1.0)}
    found = run._measured(torch, row_of(torch.work(1.0), peers), 4.0, compiled=True)
    assert found.peer == "flash2"
    assert found.peer_problems == {"cudnn": "RuntimeError: no kernel | here"}


def test_torch_compile_can_be_left_out():
    torch = FakeTorch()
    found = run._measured(torch, row_of(torch.work(1.0), {"torch.compile": broken}), 4.0, compiled=False)
    assert not found.peer_problems


def result(name, rate=1.0, **changes):
    times = {"warpwave": {"median": 1.0}, "cublas": {"median": 1.0}}
    base = run.Result(name, 0.95, 1.05, rate=rate, times=times, unit="TFLOP/s", peer="cublas", ratio=1.0)
    return dataclasses.replace(base, **changes)


def test_odd_shapes_are_compared_with_their_neighbour():
    rows = [result("gemm 1024", 200.0), result("gemm 1000", 180.0, neighbour="gemm 1024")]
    run._compare_neighbours(rows)
    assert rows[1].peer == "gemm 1024"
    assert rows[1].ratio == pytest.approx(0.9)


@pytest.mark.parametrize(("ratio", "word"), [(1.06, "aim"), (1.0, "reached"), (0.9, "below"), (0.0, "no peer")])
def test_verdicts(ratio, word):
    assert report.verdict(result("x", ratio=ratio)) == word


RECORD = {
    "gpu": "NVIDIA H200", "copy_tb_s": 4.2, "seconds": 100.0, "commit": "abc", "date": "2026-11-29", "driver": "580",
    "compiler": "NVRTC 13.0", "cuda": "13.0", "cudnn": 91000, "python": "3.12", "packages": {"torch": "2.11"},
    "clocks_after": "1980 MHz",
}  # fmt: skip


def test_the_record_is_written(tmp_path, capsys):
    rows = [result("gemm 1024"), result("gemm 2048", problem="RuntimeError: a | b")]
    run._write(tmp_path, RECORD, rows)
    written = json.loads((tmp_path / "record.json").read_text())
    assert [r["name"] for r in written["rows"]] == ["gemm 1024", "gemm 2048"]
    page = (tmp_path / "record.md").read_text()
    assert "| gemm 1024 | 1.0000 | 1.00 TFLOP/s | cublas | 1.0000 | 1.00 | 0.95 | 1.05 | reached |  | 0.00 |" in page
    table = [line for line in page.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1
    assert "1 reached, 1 failed" in capsys.readouterr().out


def test_without_a_gpu_the_environment_is_empty(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert environment.query("driver_version") == ""


def test_the_sanitizer_runs_each_tool_on_the_small_samples(monkeypatch, capsys):
    commands = []

    def fake(command, **_):
        commands.append(command)
        text = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
        return types.SimpleNamespace(returncode=86 if "racecheck" in command else 0, stdout=text, stderr="")

    monkeypatch.setattr(check.subprocess, "run", fake)
    args = types.SimpleNamespace(tools="memcheck,racecheck", only="kernel:softmax")
    assert check._sanitize(args) == 1
    assert [c[c.index("--tool") + 1] for c in commands] == ["memcheck", "racecheck"]
    assert all(c[-3:] == ["--small", "--only", "kernel:softmax"] for c in commands)
    out = capsys.readouterr().out
    assert "memcheck: exit 0" in out
    assert "ERROR SUMMARY: 0 errors" in out


def test_upstream_is_a_peer_only_where_it_is_right(monkeypatch):
    monkeypatch.setattr(upstream, "_function", lambda library, name: (library, name))
    torch = types.SimpleNamespace(empty=lambda *a, **k: None, empty_like=lambda q: None, bfloat16=None)
    b = types.SimpleNamespace(contiguous=lambda: None)
    assert upstream.gemm(torch, None, b, 4096, 4096, 4096) == {}
    monkeypatch.setattr(upstream, "_chosen", ["lib.so"])
    assert list(upstream.gemm(torch, None, b, 4096, 4096, 4096)) == ["upstream TK"]
    assert upstream.gemm(torch, None, b, 1000, 4096, 4096) == {}
    assert upstream.gemm(torch, None, b, 4096, 4096, 1000) == {}
    q, few = (types.SimpleNamespace(shape=(1, h, 4096, 128)) for h in (16, 2))
    assert list(upstream.attention(torch, q, q, q, False)) == ["upstream TK lcf"]
    assert upstream.attention(torch, q, q, q, True) == {}
    assert upstream.attention(torch, q, few, few, False) == {}


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_check_runs_the_suites_cases(monkeypatch, tmp_path, capsys, jobs):
    monkeypatch.setenv(check.PTX, "0")  # which the check sets for its processes; put back after the test
    """Here on the reference: the same cases, contract and report as on a device."""
    command = [
        "check",
        "--target",
        "reference",
        "--only",
        "kernel:softmax",
        "--jobs",
        str(jobs),
        "--out",
        str(tmp_path),
    ]
    monkeypatch.setattr("sys.argv", command)
    assert check.main() == 0
    assert "2 cases in" in capsys.readouterr().out
    found = json.loads((tmp_path / "check.json").read_text())["cases"]
    assert {c["case"]: c["result"] for c in found} == {f"kernel:softmax:{i}": "bit-exact" for i in range(2)}


def test_disagreement_is_counted(monkeypatch, capsys):
    from warpwave.conformance.runners import Outcome, Status

    outcomes = [
        Outcome("kernel:a:0", "t", Status.ERROR, problem="a fault"),
        Outcome("kernel:b:0", "t", Status.REFUSED, problem="no such type"),
    ]
    monkeypatch.setattr(check, "_outcomes", lambda *_: outcomes)
    args = types.SimpleNamespace(only="", small=False, jobs=1, out="")
    assert check._cases("t", args) == 1
    out = capsys.readouterr().out
    assert "error      kernel:a:0: a fault" in out
    assert "{'error': 1, 'refused': 1}" in out


@pytest.mark.parametrize(
    ("ratio", "share", "word"),
    [(1.3, 0.96, "aim"), (1.3, 0.9, "reached"), (1.3, 0.8, "below"), (1.1, 0.96, "reached"), (0.9, 0.96, "below")],
)
def test_what_memory_bounds_must_also_reach_the_copys_rate(ratio, share, word):
    row = result("softmax", at_least=1.0, aim=1.2, ratio=ratio, share_of_copy=share)
    assert report.verdict(row) == word


RESULTS = Path(run.__file__).resolve().parents[1] / "results" / "h200"


def test_the_documentation_shows_the_record():
    """`python -m warpwave.bench.h200.report` makes both pages."""
    newest = max(RESULTS.glob("*.json"))
    record, rows = report.read(newest)
    assert newest.with_suffix(".md").read_text() == report.markdown(record, rows)
    assert report.table(rows) in (RESULTS.parents[2] / "docs" / "nvidia.md").read_text()
