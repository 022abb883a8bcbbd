"""What a subcommand is; packages register one by entry point in the group `warpwave.commands`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

AGREE, DISAGREE, ERROR = 0, 1, 2


class Command(Protocol):
    """A subcommand: one line of help, its arguments, and what it does."""

    @property
    def help(self) -> str:
        """One line for `warpwave --help`."""
        ...

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the result is the exit status."""
        ...


@dataclass(frozen=True)
class Functions:
    """A command made of functions."""

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def no_arguments(_: argparse.ArgumentParser) -> None:
    """For commands without arguments."""
