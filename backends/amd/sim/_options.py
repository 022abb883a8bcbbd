"""Sizes and options of a launch, checked before the C++ core sees them."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from warpwave.backends.amd.sim._errors import LoadError

LARGEST = (1 << 32) - 1  # of a grid dimension, in workgroups
Size = tuple[int, int, int]


def size(what: str, given: Sequence[int]) -> Size:
    """Three dimensions from one to three numbers."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"{what} is a tuple of one to three numbers, such as {what}=(64,), not {given!r}")
    if not 1 <= len(given) <= 3:
        raise LoadError(f"{what}={tuple(given)} has {len(given)} dimensions; one to three are possible")
    numbers = [natural(what, n) for n in given] + [1, 1]
    if max(numbers) > LARGEST:
        raise LoadError(f"{what}={tuple(given)} is too large: at most {LARGEST} in a dimension")
    return numbers[0], numbers[1], numbers[2]


def natural(what: str, given: Any) -> int:
    """A whole number that is not negative."""
    try:
        number = operator.index(given)
    except TypeError:
        raise TypeError(f"{what} is a whole number, not {given!r}") from None
    if number < 0:
        raise LoadError(f"{what} is {number}; it cannot be negative")
    return number


def relaxed(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """The checks to switch off."""
    if isinstance(names, str):
        raise TypeError(f"relax is a list of names, such as relax=[{names!r}]")
    chosen = list(names)
    for name in chosen:
        if name not in known:
            raise LoadError(f"there is no check {name!r} to relax; the checks are {', '.join(known)}")
    return chosen


def traced(trace: tuple[int, int] | None, grid: Size, block: Size) -> tuple[int, int]:
    """(linear workgroup, wave) to trace; (-1, 0) for none."""
    if trace is None:
        return -1, 0
    if not isinstance(trace, Sequence) or len(trace) != 2:
        raise TypeError(f"trace is (linear workgroup, wave), not {trace!r}")
    group, wave = (natural("trace", n) for n in trace)
    groups, waves = grid[0] * grid[1] * grid[2], -(-block[0] * block[1] * block[2] // 64)
    if group >= groups or wave >= waves:
        raise LoadError(
            f"trace=({group}, {wave}) is no wave of this launch of {groups} workgroups with {waves} waves each"
        )
    return group, wave


def recorded(groups: Sequence[int], grid: Size) -> list[int]:
    """Linear workgroups to run alone and to record."""
    chosen, total = [natural("record", group) for group in groups], grid[0] * grid[1] * grid[2]
    for group in chosen:
        if group >= total:
            raise LoadError(f"record={tuple(groups)}: this launch has the workgroups 0 to {total - 1}")
    if len(set(chosen)) != len(chosen):
        raise LoadError(f"record={tuple(groups)} names a workgroup twice")
    return chosen
