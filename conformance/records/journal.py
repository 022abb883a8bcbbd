"""What is finished, one line each, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpwave.conformance.records.record import Result
from warpwave.tiles.errors import TileValueError


class Journal:
    """A file beside the record to be. The first line says which run it belongs to."""

    def __init__(self, path: Path, run: Mapping[str, Any]) -> None:
        self.path = path
        self.results: dict[tuple[str, str], Result] = {}
        if path.exists():
            self._resume(run)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"run": run}) + "\n")

    def _resume(self, run: Mapping[str, Any]) -> None:
        lines = self.path.read_text().splitlines()
        before = json.loads(lines[0]).get("run") if lines else None
        if before != json.loads(json.dumps(run)):
            raise TileValueError(
                f"{self.path} is of another run: {before}", hint="finish that run, or delete the file to start afresh"
            )
        for line in lines[1:]:
            try:
                result = Result.from_json(json.loads(line))
            except ValueError:  # the last line of a run that was stopped while it wrote
                continue
            self.results[result.outcome.case, result.outcome.target] = result

    def add(self, result: Result) -> None:
        """Note what is finished."""
        self.results[result.outcome.case, result.outcome.target] = result
        with self.path.open("a") as file:
            file.write(json.dumps(result.as_json()) + "\n")

    def missing(self, case: str, targets: list[str]) -> list[str]:
        """The targets on which a case is still to be run."""
        return [t for t in targets if (case, t) not in self.results]
