"""Constants that follow from a launch's arguments, such as a tile width from a run-time extent."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from warpwave.tiles.errors import TileTypeError


@dataclass(frozen=True)
class Derived:
    """The default of a constant; `rule` takes some of the kernel's arguments by name."""

    rule: Callable[..., Any]

    @property
    def reads(self) -> tuple[str, ...]:
        """The parameters that it depends on."""
        return _parameters(self.rule)

    def value(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """The constant for these arguments."""
        wanted = {n: arguments[n] for n in self.reads}
        try:
            return self.rule(**wanted)
        except (TypeError, IndexError) as error:
            given = ", ".join(f"{n}={a}" for n, a in wanted.items())
            raise TileTypeError(
                f"the constant {name} cannot be derived from {given}: {error}", hint=f"pass {name}=..."
            ) from error


@functools.lru_cache(maxsize=1024)
def _parameters(rule: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(rule).parameters)


def derived(rule: Callable[..., Any]) -> Any:
    """A default for a constant that depends on the arguments: `*, D=ww.derived(lambda q: q.shape[-1])`.

    The rule's parameters name parameters of the kernel; it sees arrays (or specs) with `shape` and
    `dtype`, numbers, or None for an absent tensor. A constant given by the caller or tuned goes first.
    """
    return Derived(rule)
