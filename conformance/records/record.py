"""The record file: safetensors with the kept elements of every output, and JSON in its header for the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from warpwave.conformance.records.kept import Kept, keep
from warpwave.conformance.runners.outcome import Outcome
from warpwave.conformance.suite import Case, make_case, stored_case
from warpwave.tiles.errors import TileValueError

FORMAT = 1


@dataclass(frozen=True)
class Result:
    """One case on one target, and what is kept of its outputs."""

    outcome: Outcome
    outputs: Mapping[str, Kept] = field(default_factory=dict)

    @staticmethod
    def of(outcome: Outcome) -> Result:
        """From an outcome that still has its outputs."""
        return Result(outcome.without_outputs(), {n: keep(a) for n, a in outcome.outputs.items()})

    def as_json(self) -> dict[str, Any]:
        """Plain values, outputs included."""
        return {**self.outcome.as_json(), "outputs": {n: k.as_json() for n, k in self.outputs.items()}}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Result:
        """The inverse of `as_json`."""
        return Result(Outcome.from_json(data), {n: Kept.from_json(k) for n, k in data["outputs"].items()})


@dataclass(frozen=True)
class Record:
    """`cases` holds what makes each generated case again; `complete` says that nothing was left out for time."""

    run: Mapping[str, Any]
    environment: Mapping[str, str]
    results: tuple[Result, ...]
    cases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    complete: bool = True

    @property
    def targets(self) -> list[str]:
        """The targets in it."""
        return list(dict.fromkeys(r.outcome.target for r in self.results))

    def case(self, id_: str) -> Case:
        """A case as it was when the record was made."""
        stored = self.cases.get(id_)
        return stored_case(id_, stored) if stored else make_case(id_)


def write_record(path: Path, record: Record) -> None:
    """Write it whole or not at all; a folder that is not there is made."""
    from safetensors.numpy import save

    tensors: dict[str, Any] = {}
    results: list[dict[str, Any]] = []
    for number, result in enumerate(record.results):
        outputs = {}
        for name, kept in result.outputs.items():
            key = f"{number}.{name}"
            tensors[key] = kept.elements.view(np.uint8)
            outputs[name] = {**kept.facts, "tensor": key}
        results.append({**result.outcome.as_json(), "outputs": outputs})
    header = {
        "format": FORMAT,
        "run": dict(record.run),
        "environment": dict(record.environment),
        "complete": record.complete,
        "cases": {k: dict(v) for k, v in record.cases.items()},
        "results": results,
    }
    temporary = path.with_name(path.name + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.write_bytes(save(tensors, {"warpwave": json.dumps(header, separators=(",", ":"))}))
    temporary.replace(path)


def read_record(path: Path) -> Record:
    """Read a record; TileValueError if the file is none."""
    from safetensors import safe_open

    try:
        with safe_open(str(path), "numpy") as file:
            header = json.loads((file.metadata() or {})["warpwave"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 -- it is no dict
    except Exception as error:  # whatever the library raises for a file that is not its own
        raise TileValueError(f"{path} is no conformance record: {error}") from error
    if header["format"] != FORMAT:
        raise TileValueError(f"{path} has the record format {header['format']}, this version reads {FORMAT}")
    results = tuple(_result(data, tensors) for data in header["results"])
    return Record(header["run"], header["environment"], results, header["cases"], header["complete"])


def _result(data: Mapping[str, Any], tensors: Mapping[str, Any]) -> Result:
    outputs = {name: Kept.of(facts, tensors[facts["tensor"]]) for name, facts in data["outputs"].items()}
    return Result(Outcome.from_json(data), outputs)


def merge(records: Iterable[Record]) -> Record:
    """Several machines' records of one run as one; of a result that is in several, the first counts."""
    parts = list(records)
    results: dict[tuple[str, str], Result] = {}
    for part in parts:
        for result in part.results:
            results.setdefault((result.outcome.case, result.outcome.target), result)
    environment = {k: v for part in parts for k, v in part.environment.items()}
    cases = {k: v for part in parts for k, v in part.cases.items()}
    complete = all(part.complete for part in parts)
    return Record(parts[0].run, environment, tuple(results.values()), cases, complete)
