"""A Ray cluster on this machine with two kinds of nodes: cases go to their kind, and a lost worker loses nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpwave.conformance.fleet import ATTEMPTS, check_kinds, kind_of, run_fleet, run_one
from warpwave.conformance.records import Journal
from warpwave.conformance.session import Plan
from warpwave.tiles.errors import UnsupportedError

ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")
TARGETS = ("amd:gfx942:sim", "amd:gfx950:sim")


@pytest.mark.parametrize(
    ("target", "kind"), [("amd:gfx950:sim", "gfx950"), ("nvidia:sm90a", "sm90a"), ("reference", "reference")]
)
def test_the_kind_is_the_last_part_of_the_name(target, kind):
    assert kind_of(target) == kind


def test_a_kind_that_no_node_has_is_an_error_at_once():
    there = SimpleNamespace(cluster_resources=lambda: {"CPU": 4.0, "gfx950": 8.0})
    check_kinds(there, Plan(("reference", "amd:gfx950:sim")))
    with pytest.raises(UnsupportedError, match="no node of the cluster has sm90a, for nvidia:sm90a"):
        check_kinds(there, Plan(("amd:gfx950:sim", "nvidia:sm90a")))


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for target in TARGETS:
        nodes.add_node(num_cpus=1, resources={kind_of(target): 1})
    ray.init(address=nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.mark.sweep
def test_cases_go_to_nodes_of_their_kind_and_a_lost_worker_loses_none(cluster, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()

    def work(case, target):
        here = ray.get_runtime_context().get_assigned_resources()
        Path(marks, f"{case} {target} {sorted(here)} {os.getpid()}").touch()
        if case == "program:2" and not Path(marks, f"{target} lost").exists():
            Path(marks, f"{target} lost").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if case == "program:3" and target == TARGETS[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return run_one(case, target)

    plan = Plan(TARGETS, "soak", programs=5)
    record = run_fleet(plan, Journal(tmp_path / "journal", plan.identity), work=work)
    assert record.complete
    bad = {(r.outcome.case, r.outcome.target): r.outcome.problem for r in record.results if "lost" in r.outcome.problem}
    assert set(bad) == {("program:3", TARGETS[0])}
    seen = [p.name for p in marks.iterdir()]
    assert sum(n.startswith(f"program:3 {TARGETS[0]}") for n in seen) == ATTEMPTS
    assert sum(n.startswith(f"program:2 {TARGETS[1]}") for n in seen) == 2
    assert all(f"'{kind_of(n.split()[1])}'" in n for n in seen if n.startswith("program"))
    assert all(f"target {t}" in record.environment for t in TARGETS)


@pytest.mark.sweep
def test_a_stopped_fleet_goes_on(cluster, tmp_path):
    plan = Plan(TARGETS, "soak", programs=2)
    journal = Journal(tmp_path / "journal", plan.identity)
    journal.add(run_one("program:0", TARGETS[0]))
    seen = []
    assert run_fleet(plan, journal, seen.extend).complete
    assert len(seen) == 3
