"""Configurations of a kernel, what each was found to take, and where that is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from warpwave.tiles import disk_cache
from warpwave.tiles.errors import LaunchError, ResourceError, TileError, UnsupportedError
from warpwave.tiles.runtime.backend import Measurement

UNMEASURED = "the first that can be used, since nothing was measured"


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
    def is_measured(self) -> bool:
        """Whether there is a time."""
        return any(trial.seconds is not None for trial in self.trials)

    def to_json(self) -> str:
        """As text that `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Tuning:
        """The tuning that was written."""
        found = json.loads(text)
        return cls(tuple(Trial(**trial) for trial in found["trials"]), found["best"], found["how"])


@dataclass(frozen=True)
class Refused:
    """A configuration that cannot be used."""

    error: TileError


@dataclass(frozen=True)
class Untimed:
    """A configuration that may be used, and of which no time can be told."""

    error: TileError


Outcome = Measurement | Refused | Untimed


def decided(kernel: str, target: str, configs: Sequence[Config], outcomes: Sequence[Outcome]) -> Tuning:
    """The fastest; without any times the first that may be used; an error that lists them all if none may."""
    trials = tuple(map(_trial, configs, outcomes))
    refused = [outcome.error for outcome in outcomes if isinstance(outcome, Refused)]
    if len(refused) == len(outcomes):
        raise _none_usable(kernel, target, trials, refused[0]) from refused[0]
    times = {n: outcome.seconds for n, outcome in enumerate(outcomes) if isinstance(outcome, Measurement)}
    if not times:
        first = next(n for n, outcome in enumerate(outcomes) if isinstance(outcome, Untimed))
        return Tuning(trials, first, UNMEASURED)
    best = min(times, key=lambda n: times[n])
    return Tuning(trials, best, trials[best].why)


def _trial(config: Config, outcome: Outcome) -> Trial:
    if isinstance(outcome, Measurement):
        return Trial(str(config), outcome.seconds, outcome.how)
    what = "refused" if isinstance(outcome, Refused) else "not measured"
    return Trial(str(config), None, f"{what}: {outcome.error.message.splitlines()[0]}")


def _none_usable(kernel: str, target: str, trials: Sequence[Trial], first: TileError) -> TileError:
    kind = next((k for k in (ResourceError, UnsupportedError) if isinstance(first, k)), LaunchError)
    told = [f"kernel {kernel}: none of its {len(trials)} configurations can be used for {target}", *map(str, trials)]
    return kind("\n  ".join(told), loc=first.loc, hint=first.hint)


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
