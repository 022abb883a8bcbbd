"""`warpwave show`: what a kernel becomes for a target."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from warpwave.tiles.cli.command import AGREE, Functions
from warpwave.tiles.cli.loading import load_kernel, parse_constant
from warpwave.tiles.errors import TileValueError, UnsupportedError
from warpwave.tiles.runtime.compiled import Compiled
from warpwave.tiles.runtime.kernel import Kernel
from warpwave.tiles.runtime.spec import spec

VIEWS = ("ir", "source", "asm", "resources", "explain")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("kernel", help="FILE.py:NAME or package.module:NAME")
    parser.add_argument(
        "specs", nargs="*", metavar="ARG", help="bf16[512,256], f32[?,64], i32 or none; by default the first sample"
    )
    parser.add_argument("--target", default="reference")
    parser.add_argument("--const", action="append", default=[], metavar="NAME=VALUE", help="a compile-time constant")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the target")
    view = parser.add_mutually_exclusive_group()
    for name in VIEWS:
        view.add_argument(f"--{name}", dest="view", action="store_const", const=name)
    view.add_argument(
        "--layout",
        nargs="?",
        const="",
        metavar="TILE",
        help="list the tiles, or draw one: lanes, or banks and conflicts",
    )
    view.add_argument(
        "--schedule", dest="view", action="store_const", const="schedule", help="what loops are made of, in time"
    )
    where = "where to draw --layout or --schedule: .svg, or .png with matplotlib"
    parser.add_argument("-o", "--output", metavar="FILE", help=where)
    parser.set_defaults(view="ir")


def run(args: argparse.Namespace) -> int:
    """Print the view that is asked for."""
    kernel, options = load_kernel(args.kernel), dict(parse_constant(text) for text in args.option)
    positional, named = _arguments(kernel, args)
    if args.layout is not None:
        from warpwave.tiles.cli.layout import show_layout  # draws, which no other view needs

        captured = kernel.capture(*positional, target=args.target, **named)  # built or not, whether it fits or not
        print(show_layout(captured, args.target, args.layout, args.output, options))
    elif args.view == "schedule":
        from warpwave.tiles.cli.schedule import show_schedule  # draws as well

        captured = kernel.capture(*positional, target=args.target, **named)
        print(show_schedule(captured, args.target, args.output, options))
    else:
        compiled = kernel.compile(*positional, target=args.target, options=options, **named)
        print(_view(compiled, args.view).rstrip())
    return AGREE


def _arguments(kernel: Kernel, args: argparse.Namespace) -> tuple[list[Any], dict[str, Any]]:
    """What to compile for: the specs that are given, else the kernel's first sample, and constants."""
    constants = dict(parse_constant(text) for text in args.const)
    if args.specs:
        return [spec(text) for text in args.specs], constants
    samples = kernel.sample_inputs()
    if not samples:
        raise TileValueError(f"kernel {kernel.name} yields no sample inputs")
    return [], {**samples[0], **constants}


def _view(compiled: Compiled, view: str) -> str:
    if view == "resources":
        text = "\n".join(_table(compiled.resources))
    else:
        text = compiled.explain() if view == "explain" else str(getattr(compiled, view))
    if not text.strip():
        raise UnsupportedError(f"{compiled.target} has no {view}", hint="see --ir or --explain")
    return text


def _table(values: Mapping[str, Any], indent: str = "") -> list[str]:
    """Names and values in columns; a mapping among the values is a table of its own."""
    width = max((len(name) for name in values), default=0)
    lines: list[str] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            lines += [f"{indent}{name}{'' if value else '  none'}", *_table(value, indent + "  ")]
        else:
            lines.append(f"{indent}{name:<{width}}  {value}")
    return lines


COMMAND = Functions(
    "print what a kernel becomes: IR, source, assembly, resources, schedules, or why", add_arguments, run
)
