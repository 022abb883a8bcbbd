"""`warpwave sim FILE`: run a kernel of an assembly file or code object on the simulator."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warpwave.backends.amd.sim._arguments import GRAMMAR, Argument, parse
from warpwave.backends.amd.sim._errors import LoadError, SimError
from warpwave.backends.amd.sim._program import Program, load
from warpwave.backends.amd.sim._report import Report
from warpwave.tiles.errors import UnsupportedError

OK, VIOLATION, USAGE = 0, 1, 2
WORST = 10  # source lines of which --time says what they waited for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.usage = "%(prog)s FILE [ARG ...] [options]"
    parser.epilog = GRAMMAR
    parser.add_argument("file", type=Path, help="LLVM assembly (.s), or a code object")
    parser.add_argument("args", nargs="*", metavar="ARG", help="kernel arguments, in order (see below)")
    parser.add_argument("--kernel", help="kernel name; may be left out when the file has one")
    parser.add_argument("--target", default="", help="gfx942 or gfx950, where the file does not say")
    parser.add_argument("--grid", type=_size, default=(1,), metavar="X[,Y[,Z]]", help="workgroups")
    parser.add_argument("--block", type=_size, default=(64,), metavar="X[,Y[,Z]]", help="work-items a workgroup")
    parser.add_argument("--lds", type=int, default=0, metavar="BYTES", help="dynamic LDS")
    parser.add_argument("--seed", type=int, default=0, help="wave interleaving; 0 is the fixed one")
    parser.add_argument("--threads", type=int, default=0, help="host threads; 0 means one per core")
    parser.add_argument("--relax", type=_names, default=(), metavar="CHECK[,CHECK]", help="checks to switch off")
    parser.add_argument("--trace", type=_wave, metavar="[GROUP:]WAVE", help="print what one wave did")
    parser.add_argument("--listing", action="store_true", help="print the code with its counts")
    parser.add_argument(
        "--time",
        nargs="?",
        const="",
        metavar="CHIP",
        help="print modelled clocks instead, of the workgroups that share a compute unit; only these run",
    )
    parser.add_argument("--dtype", default="", help="with --time: the clock that the chip keeps up under such operands")
    parser.add_argument("--perfetto", type=Path, metavar="FILE.json", help="with --time: a trace for ui.perfetto.dev")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--out", action="append", default=[], metavar="[NAME=]FILE.npy", help="save a buffer; NAME is the file's stem"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command; 0 done, 1 a violation, 2 wrong use."""
    try:
        program = load(args.file, args.target)
        kernel = _kernel(program, args.kernel)
        arguments = [parse(text, i) for i, text in enumerate(args.args)]
        outputs = [_output(text, arguments) for text in args.out]
        if args.time is not None:
            return _time(program, kernel, arguments, args)
        report = _launch(program, kernel, arguments, args)
        for path, array in outputs:
            np.save(path, array)
    except SimError as error:
        return _violation(error, args)
    except OSError as error:
        return _usage(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (LoadError, ValueError, MemoryError, UnsupportedError) as error:
        return _usage(str(error))
    _show(report, args, several=len(program.kernels) > 1)
    return OK


@dataclass(frozen=True)
class Command:
    """What the command line needs to know of a subcommand."""

    help: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's options."""
        add_arguments(parser)

    def run(self, args: argparse.Namespace) -> int:
        """Run the command and return its exit code."""
        return run(args)


COMMAND = Command("run a kernel of an assembly file or code object on the AMD simulator")


def _launch(program: Program, kernel: str, arguments: list[Argument], args: argparse.Namespace) -> Report:
    return program.launch(
        kernel,
        args.grid,
        args.block,
        [argument.value for argument in arguments],
        dynamic_lds=args.lds,
        seed=args.seed,
        threads=args.threads,
        relax=args.relax,
        trace=args.trace,
    )


def _time(program: Program, kernel: str, arguments: list[Argument], args: argparse.Namespace) -> int:
    from warpwave.backends.amd.model.chrome import write_chrome_trace  # the model builds on the simulator
    from warpwave.backends.amd.model.timing import record

    values = [argument.value for argument in arguments]
    recorded = record(
        program, kernel, args.grid, args.block, values, dynamic_lds=args.lds, seed=args.seed, relax=args.relax
    )
    timing = recorded.timed(args.time or None, dtype=args.dtype)
    print(timing)
    for line, reasons in list(timing.stalls_by_line().items())[:WORST]:
        print(f"  {sum(reasons.values()):>10,} clocks waited at {line}: " + ", ".join(reasons))
    if args.perfetto:
        write_chrome_trace(timing, args.perfetto)
    return OK


def _kernel(program: Program, name: str | None) -> str:
    known = program.kernels
    if name is None and len(known) == 1:
        return known[0]
    if name not in known:
        wanted = "name one with --kernel" if name is None else f"no kernel {name!r}"
        raise LoadError(f"{wanted}; the file has {', '.join(known)}")
    return name


def _output(text: str, arguments: list[Argument]) -> tuple[Path, np.ndarray]:
    name, separator, file = text.partition("=")
    path = Path(file if separator else text)
    name = name if separator else path.stem
    for argument in arguments:
        if argument.name == name and isinstance(argument.value, np.ndarray):
            if not path.parent.is_dir():  # found out before the run, not after it
                raise ValueError(f"--out {text}: there is no folder {path.parent}")
            return path, argument.value
    names = ", ".join(argument.name for argument in arguments if argument.is_buffer) or "none"
    raise ValueError(f"--out {text}: no buffer is named {name!r}; buffers: {names}")


def _show(report: Report, args: argparse.Namespace, *, several: bool) -> None:
    if args.json:
        print(json.dumps(report.to_dict(), indent=1))
        return
    console = _console()
    if args.trace:
        console.print(report.trace_table())
    if args.listing:
        console.print(report.listing(executed_only=several))  # not the code of the file's other kernels
    console.print(report.table())


def _violation(error: SimError, args: argparse.Namespace) -> int:
    if args.json:
        print(json.dumps({"violation": _plain(error)}, indent=1))
    else:
        _console(stderr=True).print(str(error), style="red", markup=False, highlight=False)
    return VIOLATION


def _plain(error: SimError) -> dict[str, Any]:
    return {name: value for name, value in vars(error).items() if not name.startswith("_")}


def _usage(message: str) -> int:
    _console(stderr=True).print(f"warpwave sim: {message}", style="red", markup=False, highlight=False)
    return USAGE


def _console(*, stderr: bool = False) -> Any:
    from rich.console import Console

    console = Console(stderr=stderr)
    # A pipe has no width of its own, and a listing cut at 80 columns helps nobody.
    return console if console.is_terminal else Console(stderr=stderr, width=200)


def _size(text: str) -> tuple[int, ...]:
    parts = tuple(int(part) if part.strip().isdecimal() else 0 for part in text.split(","))
    if not 1 <= len(parts) <= 3 or min(parts) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not one to three positive numbers")
    return parts


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _wave(text: str) -> tuple[int, int]:
    group, _, wave = text.rpartition(":")
    if not wave.isdecimal() or not (group or "0").isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a wave, or a workgroup and a wave such as 3:0")
    return int(group or 0), int(wave)
