"""`warpwave doctor`: what is here, what is missing, and the one command that mends each thing."""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from warpwave.tiles.cli.command import AGREE, DISAGREE, Functions
from warpwave.tiles.cli.console import console, escape, print_json, print_table
from warpwave.tiles.runtime import registry
from warpwave.tiles.runtime.backend import Diagnosis

MINIMUM = {"numpy": "1.26", "ml_dtypes": "0.5", "rich": "13"}
COMPILERS = ("c++", "g++", "clang++")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="machine-readable report")


def run(args: argparse.Namespace) -> int:
    """Report; 0 if nothing is missing, else 1."""
    found = [(part, d) for part, d in diagnose()]
    ok = all(d.ok for _, d in found)
    if args.json:
        print_json(
            [{"part": part, "what": d.what, "ok": d.ok, "detail": d.detail, "remedy": d.remedy} for part, d in found]
        )
    else:
        print_table("", ("part", "what", "", "detail", "mend it with"), [_row(part, d) for part, d in found])
        console().print("[green]everything is here" if ok else "[yellow]what is missing limits what can run here")
    return AGREE if ok else DISAGREE


def _row(part: str, d: Diagnosis) -> tuple[str, ...]:
    mark = "[green]ok[/]" if d.ok else "[red]missing[/]"
    return escape(part), escape(d.what), mark, escape(d.detail), "" if d.ok else escape(d.remedy)


def diagnose() -> Iterator[tuple[str, Diagnosis]]:
    """Everything that is looked at, with the part that needs it."""
    yield "warpwave", _python()
    yield "warpwave", _self()
    for name, minimum in MINIMUM.items():
        yield "warpwave", _package(name, minimum)
    yield "warpwave", _compiler()
    for plugin in registry.plugins().values():
        yield from ((plugin.name, d) for d in _plugin(plugin))


def _python() -> Diagnosis:
    return Diagnosis(
        "Python >= 3.10", sys.version_info >= (3, 10), platform.python_version(), "install Python 3.10 or newer"
    )


def _self() -> Diagnosis:
    try:
        return Diagnosis("installed package", True, version("warpwave"))
    except PackageNotFoundError:
        return Diagnosis(
            "installed package", False, "imported from a source tree: no backend is found", "pip install -e ."
        )


def _package(name: str, minimum: str) -> Diagnosis:
    remedy = f"pip install '{name}>={minimum}'"
    try:
        found = version(name)
    except PackageNotFoundError:
        return Diagnosis(f"{name} >= {minimum}", False, "not installed", remedy)
    return Diagnosis(f"{name} >= {minimum}", _numbers(found) >= _numbers(minimum), found, remedy)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(".")[:2] if part.isdecimal()]


def _compiler() -> Diagnosis:
    path = next(filter(None, map(shutil.which, COMPILERS)), None)
    return Diagnosis(
        "C++ compiler (to build from source)", path is not None, path or "not found", "apt-get install g++"
    )


def _plugin(plugin: registry.Plugin) -> Iterator[Diagnosis]:
    if plugin.backend is None:
        yield Diagnosis("loads", False, plugin.problem, f"pip install --force-reinstall {plugin.owner}")
        return
    yield Diagnosis("loads", True, f"from {plugin.owner}")
    yield from plugin.backend.diagnose()


COMMAND = Functions("say what is installed, what is missing, and how to mend it", add_arguments, run)
