"""Entry of the command line."""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points

from warpwave.tiles.cli.command import ERROR, Command
from warpwave.tiles.errors import TileError

GROUP = "warpwave.commands"
DESCRIPTION = "One tile kernel source for GPUs of several vendors, and proof that they agree."
BUILT_IN = ("check", "show", "targets", "doctor")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is the command's, 2 for errors."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="warpwave", description=DESCRIPTION)
    commands = _commands(arguments)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in commands.items():
        command.add_arguments(subparsers.add_parser(name, help=command.help, description=command.help))
    args = parser.parse_args(arguments)
    try:
        return commands[args.command].run(args)
    except TileError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return ERROR
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
        return 0
    except Exception:  # a defect, or an error in the user's own file; Python's status for it is 1, ours for "disagree"
        traceback.print_exc()
        return ERROR


def _commands(arguments: Sequence[str]) -> Mapping[str, Command]:
    """The command that is asked for, or all for the overview."""
    points = {p.name: p for p in entry_points(group=GROUP)}
    wanted = arguments[0] if arguments else ""
    if wanted in BUILT_IN:
        return {wanted: _built_in(wanted)}
    if wanted in points:
        return {wanted: _load(points[wanted])}
    loaded = {name: _built_in(name) for name in BUILT_IN}
    for name, point in sorted(points.items()):
        try:
            loaded[name] = _load(point)
        except Exception as error:  # another package's import; the overview must still work
            print(f"warpwave: the command {name!r} ({point.value}) cannot be loaded: {error}", file=sys.stderr)
    return loaded


def _built_in(name: str) -> Command:
    command: Command = importlib.import_module(f"warpwave.tiles.cli.{name}").COMMAND
    return command


def _load(point: EntryPoint) -> Command:
    command: Command = point.load()
    return command
