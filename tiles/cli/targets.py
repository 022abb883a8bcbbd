"""`warpwave targets`: what kernels can be compiled for, and what runs here."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from warpwave.tiles.cli.command import AGREE, Functions
from warpwave.tiles.cli.console import escape, print_json, print_table
from warpwave.tiles.runtime import registry
from warpwave.tiles.runtime.backend import Target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="machine-readable list")


def run(args: argparse.Namespace) -> int:
    """List them."""
    plugins = registry.plugins().values()
    if args.json:
        listed = [{**asdict(t), "owner": p.owner} for p in plugins if p.backend for t in p.backend.targets()]
        broken = [{"name": p.name, "owner": p.owner, "problem": p.problem} for p in plugins if not p.backend]
        print_json({"targets": listed, "broken": broken})
        return AGREE
    rows = [_row(t, p.owner) for p in plugins if p.backend for t in p.backend.targets()]
    rows += [
        (f"[red]{p.name}[/]", p.owner, f"[red]broken[/]: {escape(p.problem)}", "") for p in plugins if not p.backend
    ]
    print_table("", ("target", "from", "runs on", "what it is"), rows)
    return AGREE


def _row(target: Target, owner: str) -> tuple[str, str, str, str]:
    runs = f"[green]{escape(target.runs)}[/]" if target.runs else f"[yellow]nothing here[/]: {escape(target.missing)}"
    if target.remedy and not target.runs:
        runs += f" → {escape(target.remedy)}"
    return escape(target.name), owner, runs, escape(target.description)


COMMAND = Functions("list the targets and what runs them here", add_arguments, run)
