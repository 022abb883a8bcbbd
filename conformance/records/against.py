"""Runs a record's own cases here, so that another machine's results are checked without that machine."""

from __future__ import annotations

from collections.abc import Sequence

from warpwave.conformance.records.environment import environment
from warpwave.conformance.records.record import Record, Result
from warpwave.conformance.runners.run_case import run_case


def rerun(record: Record, targets: Sequence[str], limit: int = 0) -> Record:
    """The record's cases (at most `limit`, spread evenly) on targets here."""
    ids = list(dict.fromkeys(r.outcome.case for r in record.results))
    if limit and limit < len(ids):
        ids = [ids[i * len(ids) // limit] for i in range(limit)]
    results = [Result.of(outcome) for id_ in ids for outcome in run_case(record.case(id_), targets)]
    cases = {id_: record.cases[id_] for id_ in ids if id_ in record.cases}
    return Record(record.run, environment(targets), tuple(results), cases, record.complete and not limit)
