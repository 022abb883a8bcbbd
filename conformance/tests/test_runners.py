"""Cases, outcomes, the pool of processes, the journal: nothing is lost, and a bad result is seen."""

from __future__ import annotations

import json
import os
import signal
import time

import numpy as np
import pytest

from warpwave.conformance import profiles
from warpwave.conformance.records import Journal
from warpwave.conformance.runners import Outcome, Status, execute, pool, run_case
from warpwave.conformance.runners.pool import Limits, run_parallel
from warpwave.conformance.session import Plan, record_of, run, runnable_targets
from warpwave.conformance.suite import Case, make_case, profile, stored_case
from warpwave.conformance.suite.ops import case_names
from warpwave.conformance.verdicts import Level
from warpwave.tiles.errors import TileError, TileValueError, UnsupportedError

QUICK_OP = "ops:rounding:f32"


@pytest.mark.parametrize("id_", ["program:5", QUICK_OP, "kernel:softmax:0"])
def test_a_case_is_the_same_every_time(id_):
    assert make_case(id_).input_digest() == make_case(id_).input_digest()


@pytest.mark.parametrize("id_", ["program:x", "ops:functions:q8", "kernel:softmax", "nothing"])
def test_an_unknown_case_is_refused(id_):
    with pytest.raises(TileError, match=r"no case|no library kernel"):
        make_case(id_)


def test_a_stored_case_needs_no_generator():
    case = make_case("program:11")
    again = stored_case("program:11", json.loads(json.dumps(case.stored)))
    assert again.input_digest() == case.input_digest()
    (before,), (after,) = (list(run_case(c, ["reference"])) for c in (case, again))
    assert [v.output for v in before.verdicts] == [v.output for v in after.verdicts]
    for name, array in before.outputs.items():
        np.testing.assert_array_equal(array.view(np.uint8), after.outputs[name].view(np.uint8))


def test_every_family_of_ops_is_in_the_quick_profile():
    assert set(case_names()) < set(profile("quick"))
    assert len(profile("soak")) == 10_000
    assert not set(profile("quick", 0)) & {c for c in profile("quick", 1) if c.startswith("program")}


def test_the_reference_is_bit_exact():
    (outcome,) = run_case(make_case(QUICK_OP), ["reference"])
    assert (outcome.status, outcome.level, outcome.bad) == (Status.OK, Level.BIT_EXACT, False)
    assert Outcome.from_json(json.loads(json.dumps(outcome.as_json()))) == outcome


def off_by_one_bit(case: Case, target: str):
    outputs = execute(case, "reference")
    name = next(iter(outputs))
    outputs[name].reshape(-1).view(np.uint8)[0] ^= 1
    return outputs


def test_one_wrong_bit_of_an_exact_op_is_a_violation():
    (outcome,) = run_case(make_case("ops:moves:i32"), ["reference"], execute=off_by_one_bit)
    assert outcome.bad
    assert outcome.level is Level.VIOLATION
    found = profiles.run("quick", ["reference"], execute=off_by_one_bit)
    assert len(found.violations) == 1


def test_refusals_and_errors_are_told_apart():
    def refusing(case, target):
        raise UnsupportedError("no such instruction")

    def failing(case, target):
        raise RuntimeError("device lost")

    outcomes = [next(run_case(make_case(QUICK_OP), ["reference"], execute=e)) for e in (refusing, failing)]
    assert [(o.status, o.bad) for o in outcomes] == [(Status.REFUSED, False), (Status.ERROR, True)]
    assert "device lost" in outcomes[1].problem


def test_unknown_and_missing_targets_are_errors():
    assert "reference" in runnable_targets(None)
    with pytest.raises(UnsupportedError, match="no target"):
        runnable_targets("nowhere:1")
    with pytest.raises(TileValueError, match="no target is named"):
        runnable_targets(" , ")


# -- processes ----------------------------------------------------------------------------------------


def test_the_pool_gives_every_outcome():
    cases = [(c, ["reference"]) for c in ("program:1", "program:2", "program:3")]
    outcomes = [o for group in run_parallel(cases, 2) for o in group]
    assert sorted(o.case for o in outcomes) == sorted(c for c, _ in cases)
    assert not any(o.bad for o in outcomes)
    assert all(o.outputs for o in outcomes)


def dying(pipe):
    case, targets = pipe.recv()
    pipe.send(pool.STARTED)
    if case == "program:1":
        os.kill(os.getpid(), signal.SIGKILL)
    if case == "program:2":
        time.sleep(60)
    for target in targets:
        pipe.send(Outcome(case, target, Status.OK))
    pipe.send(pool.DONE)
    dying(pipe)


def test_a_case_that_kills_or_blocks_its_process_is_an_error_of_that_case_only(monkeypatch):
    monkeypatch.setattr(pool, "_serve", dying)
    cases = [(f"program:{i}", ["a", "b"]) for i in range(1, 4)]
    outcomes = {(o.case, o.target): o for group in run_parallel(cases, 1, Limits(1.0)) for o in group}
    assert len(outcomes) == 6
    assert {c for (c, _), o in outcomes.items() if o.bad} == {"program:1", "program:2"}
    assert "ended with status -9" in outcomes["program:1", "b"].problem
    assert "more than" in outcomes["program:2", "a"].problem


def leaving(pipe):
    case, (target,) = pipe.recv()
    pipe.send(Outcome(case, target, Status.ERROR, problem=str(os.getpid())))
    pipe.send(pool.LAST)


def test_a_process_that_has_lost_its_device_is_replaced(monkeypatch):
    monkeypatch.setattr(pool, "_serve", leaving)
    outcomes = [o for group in run_parallel([(f"program:{i}", ["a"]) for i in range(2)], 1) for o in group]
    assert [o.case for o in outcomes] == ["program:0", "program:1"]
    assert len({o.problem for o in outcomes}) == 2


def test_a_case_that_runs_on_after_the_limit_is_given_up(monkeypatch):
    monkeypatch.setattr(pool, "_serve", dying)
    monkeypatch.setattr(pool, "GRACE_SECONDS", 0.0)
    start = time.monotonic()
    assert list(run_parallel([("program:2", ["a"])], 1, Limits(end=start + 0.5))) == []
    assert time.monotonic() - start < 50  # it sleeps for 60


def test_no_case_is_begun_after_the_time_limit():
    cases = [(f"program:{i}", ["reference"]) for i in range(4)]
    assert list(run_parallel(cases, 1, Limits(end=time.monotonic() - 1))) == []


# -- the journal --------------------------------------------------------------------------------------


def test_a_stopped_run_goes_on(tmp_path):
    plan = Plan(("reference",), "soak", programs=4, jobs=1)
    path = tmp_path / "run.journal"
    whole = run(plan, Journal(path, plan.identity))
    assert whole.complete
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:3]) + "\n" + lines[3][:50])  # stopped while it wrote the third result
    seen = []
    resumed = run(plan, Journal(path, plan.identity), seen.extend)
    assert len(seen) == 2
    assert [r.outcome.case for r in resumed.results] == [r.outcome.case for r in whole.results]
    digests = [[k.digest for r in record.results for k in r.outputs.values()] for record in (resumed, whole)]
    assert digests[0] == digests[1]


def test_a_journal_of_another_run_is_refused(tmp_path):
    plan = Plan(("reference",), "soak", programs=1)
    Journal(tmp_path / "j", plan.identity)
    with pytest.raises(TileValueError, match="another run"):
        Journal(tmp_path / "j", Plan(("reference",), "soak", programs=2).identity)


def test_an_unfinished_run_says_so(tmp_path):
    plan = Plan(("reference",), "soak", programs=2)
    assert not record_of(plan, Journal(tmp_path / "j", plan.identity)).complete
