"""Configurations of a kernel, what each was found to take, and where that is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from warpwave.tiles import disk_cache


class Config:
    """Constants of a kernel, and options of its target, that are worth trying together."""

    def __init__(self, *, options: Mapping[str, Any] | None = None, **constants: Any) -> None:
        self.constants = constants
        self.options = dict(options or {})

    def __repr__(self) -> str:
        parts = [f"{name}={value!r}" for name, value in self.constants.items()]
        return f"Config({', '.join([*parts, *([f'options={self.options!r}'] if self.options else [])])})"

    def __str__(self) -> str:
        parts = [f"{name}={value}" for name, value in (*self.constants.items(), *self.options.items())]
        return ", ".join(parts) or "defaults"


@dataclass(frozen=True)
class Trial:
    """One configuration: its time, or why it has none."""

    config: str
    seconds: float | None
    why: str = ""

    def __str__(self) -> str:
        return f"{self.config}: {self.why if self.seconds is None else f'{self.seconds * 1e6:.1f} us'}"


@dataclass(frozen=True)
class Tuning:
    """What was tried for one kind of arguments, in order; `best` is the place of the one that is used.

    `how` says what the times are: measured on which device, or modelled for which.
    """

    trials: tuple[Trial, ...]
    best: int
    how: str

    def __str__(self) -> str:
        """A table: the configuration that is used is marked."""
        lines = [f"{'*' if place == self.best else ' '} {trial}" for place, trial in enumerate(self.trials)]
        return "\n".join([self.how, *lines])

    @property
    def reason(self) -> str:
        """The same in a line."""
        others = "; ".join(str(trial) for place, trial in enumerate(self.trials) if place != self.best)
        return f"{self.how}: {self.trials[self.best]}" + (f"; {others}" if others else "")

    def to_json(self) -> str:
        """As text that `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Tuning:
        """The tuning that was written."""
        found = json.loads(text)
        return cls(tuple(Trial(**trial) for trial in found["trials"]), found["best"], found["how"])


def place(parts: Sequence[str]) -> Path:
    """The file that holds a tuning, by all that it depends on."""
    return disk_cache.place("tuned", parts, ".json")


def load(path: Path) -> Tuning | None:
    """The tuning, if it was kept."""
    text = disk_cache.load(path)
    return None if text is None else Tuning.from_json(text)


def save(path: Path, tuning: Tuning) -> None:
    """Keep a tuning."""
    disk_cache.save(path, tuning.to_json())
