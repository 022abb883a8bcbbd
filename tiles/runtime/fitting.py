"""After a kernel did not fit its target: the nearest configuration that does, found by building candidates."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from warpwave.tiles.errors import ResourceError, TileError

SECONDS = 20.0  # of building candidates; $WARPWAVE_FIT_SECONDS, 0 for none
STEPS = 3  # changes of one candidate
SMALLEST = 16

# A constant that sizes tiles: BM, BK, BLOCK_N, TILE... Others may change what the kernel computes.
_SIZES_TILES = re.compile(r"B[A-Z0-9]{0,2}|(BLOCK|TILE)\w*")

Build = Callable[[dict[str, Any], dict[str, Any]], Any]


@dataclass(frozen=True)
class Candidate:
    """A configuration: the changed constants and options, and how many changes they are."""

    constants: Mapping[str, Any]
    options: Mapping[str, Any]
    steps: int

    def __str__(self) -> str:
        parts = [f"{name}={value}" for name, value in self.constants.items()]
        return ", ".join([*parts, *([f"options={dict(self.options)}"] if self.options else [])])


def candidates(
    constants: Mapping[str, Any], options: Mapping[str, Any], alternatives: Mapping[str, tuple[Any, ...]]
) -> list[Candidate]:
    """What to try, nearest first: constants that size tiles halved once or more, options of the target changed."""
    halved = {n: list(_halvings(v)) for n, v in constants.items() if _SIZES_TILES.fullmatch(n) and _is_size(v)}
    choices: list[list[tuple[str, str, Any, int]]] = []
    for name, smaller in halved.items():
        choices.append([("constant", name, None, 0), *(("constant", name, v, i) for i, v in enumerate(smaller, 1))])
    for name, values in alternatives.items():
        others = [v for v in values if v != options.get(name)]
        choices.append([("option", name, None, 0), *(("option", name, v, 1) for v in others)])
    found = [_candidate(chosen) for chosen in itertools.product(*choices)]
    return sorted((c for c in found if 0 < c.steps <= STEPS), key=lambda c: c.steps)


def _candidate(chosen: tuple[tuple[str, str, Any, int], ...]) -> Candidate:
    changed = {kind: {n: v for k, n, v, steps in chosen if k == kind and steps} for kind in ("constant", "option")}
    return Candidate(changed["constant"], changed["option"], sum(steps for *_, steps in chosen))


def _is_size(value: Any) -> bool:
    return type(value) is int and value > SMALLEST and value & (value - 1) == 0


def _halvings(value: int) -> Iterator[int]:
    while value > SMALLEST:
        value //= 2
        yield value


def suggest(
    error: ResourceError,
    constants: Mapping[str, Any],
    options: Mapping[str, Any],
    alternatives: Mapping[str, tuple[Any, ...]],
    build: Build,
) -> None:
    """Put the nearest configuration that was seen to build into the error's hint, if one is found in time."""
    seconds = float(os.environ.get("WARPWAVE_FIT_SECONDS", SECONDS))
    end, tried = time.monotonic() + seconds, 0
    for candidate in candidates(constants, options, alternatives):
        if time.monotonic() >= end:
            break
        tried += 1
        try:
            build({**constants, **candidate.constants}, {**options, **candidate.options})
        except TileError:  # too large still, or sizes that do not go together
            continue
        error.hint = f"{candidate} fits: it was built"
        return
    if tried:
        error.hint = f"none of {tried} nearby configurations fits; {error.hint}"
