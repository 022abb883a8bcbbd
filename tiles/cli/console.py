"""Readable output through rich, which is imported only when a command prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def console() -> Console:
    """Standard output; wide when it is no terminal, so that nothing is cut in a log."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def print_json(value: Any) -> None:
    """`value` as JSON on standard output."""
    json.dump(value, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def print_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table whose cells may use rich's markup."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(*headings, title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console().print(table)


def escape(text: str) -> str:
    """Text without markup, such as `bf16[512,256]`."""
    from rich.markup import escape as rich_escape

    return rich_escape(text)


@contextmanager
def progress(total: int, *, quiet: bool = False) -> Iterator[Progress]:
    """A progress bar on standard error, shown on a terminal only and gone when done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    stderr = Console(stderr=True)
    with Progress(*columns, console=stderr, transient=True, disable=quiet or not stderr.is_terminal) as bar:
        bar.add_task("", total=total)
        yield bar
