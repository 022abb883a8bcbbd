"""`warpwave conformance`: run cases on targets, compare records of machines, report, show one case."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from warpwave.conformance.cli_text import print_comparison, print_outcomes, progress_of
from warpwave.conformance.records import Journal, Record, compare, read_record, write_record
from warpwave.conformance.records.record import merge
from warpwave.conformance.session import Plan, Watch, journal_path, named_targets, run, runnable_targets
from warpwave.conformance.suite import PROFILES, make_case
from warpwave.tiles.cli.command import AGREE, DISAGREE, ERROR, Functions
from warpwave.tiles.cli.console import console

DEFAULT_RECORD = "conformance.safetensors"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _run_arguments(actions.add_parser("run", help="run a profile's cases on targets and write a record"))
    comparing = actions.add_parser("compare", help="explain every difference between two records; no GPU needed")
    comparing.add_argument("a", type=Path)
    comparing.add_argument("b", type=Path)
    against = actions.add_parser("against", help="run a record's cases on targets here, and compare with the record")
    against.add_argument("record", type=Path)
    against.add_argument("--targets", help="comma-separated; by default all that run here")
    against.add_argument("--limit", type=int, default=0, help="only so many cases, spread over the record")
    reporting = actions.add_parser("report", help="an HTML page and a Markdown text of one or more records")
    reporting.add_argument("records", type=Path, nargs="+")
    reporting.add_argument("--out", type=Path, default=Path("conformance.html"))
    merging = actions.add_parser("merge", help="several machines' records of one run as one")
    merging.add_argument("records", type=Path, nargs="+")
    merging.add_argument("--out", type=Path, required=True)
    showing = actions.add_parser("show", help="print a case as a script that runs it, or a kernel's name")
    showing.add_argument("case", help="program:7, ops:functions:f32, kernel:softmax:0")
    showing.add_argument("--target", default="reference")
    showing.add_argument("--shrink", action="store_true", help="shorten a failing program first")


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--targets", help="comma-separated; by default all that run here")
    parser.add_argument("--profile", choices=list(PROFILES), default="quick")
    parser.add_argument("--seed", type=int, default=0, help="another seed is another set of generated programs")
    parser.add_argument("--programs", type=int, help="how many generated programs, instead of the profile's")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name has this text in it")
    parser.add_argument("--jobs", type=int, default=0, help="processes; by default one for each core")
    parser.add_argument("--time-limit", type=float, default=float("inf"), metavar="SECONDS", help="begin no case later")
    parser.add_argument("--out", type=Path, default=Path(DEFAULT_RECORD), help="the record; a stopped run goes on")
    parser.add_argument("--ray", metavar="ADDRESS", help="spread over a Ray cluster: its address, `auto` or `local`")


def run_command(args: argparse.Namespace) -> int:
    """Do what is asked for."""
    return ACTIONS[args.action](args)


def _run(args: argparse.Namespace) -> int:
    here = not args.ray or not args.targets
    targets = runnable_targets(args.targets) if here else named_targets(args.targets)
    plan = Plan(targets, args.profile, args.seed, args.programs, args.only, args.jobs, args.time_limit)
    journal = Journal(journal_path(args.out), plan.identity)
    with progress_of(plan, journal) as watch:
        record = _spread(plan, journal, watch, args.ray) if args.ray else run(plan, journal, watch)
    write_record(args.out, record)
    if record.complete:
        journal.path.unlink()
    return _finish(record, args.out)


def _spread(plan: Plan, journal: Journal, watch: Watch, address: str) -> Record:
    from warpwave.conformance.fleet import run_fleet

    return run_fleet(plan, journal, watch, address=None if address == "local" else address)


def _finish(record: Record, path: Path) -> int:
    bad = print_outcomes(record)
    size = path.stat().st_size / 2**20
    more = "" if record.complete else "; not all cases were run, the same command goes on"
    console().print(f"record: {path} ({size:.1f} MB){more}")
    return DISAGREE if bad else AGREE


def _compare(args: argparse.Namespace) -> int:
    return print_comparison(compare(read_record(args.a), read_record(args.b)))


def _against(args: argparse.Namespace) -> int:
    from warpwave.conformance.records.against import rerun

    record = read_record(args.record)
    return print_comparison(compare(record, rerun(record, runnable_targets(args.targets), args.limit)))


def _report(args: argparse.Namespace) -> int:
    from warpwave.conformance.report import write_report

    for path in write_report([read_record(p) for p in args.records], args.out):
        console().print(f"wrote {path}")
    return AGREE


def _merge(args: argparse.Namespace) -> int:
    record = merge(read_record(p) for p in args.records)
    write_record(args.out, record)
    return _finish(record, args.out)


def _show(args: argparse.Namespace) -> int:
    from warpwave.conformance.explain import script_of

    case = make_case(args.case)
    if not case.stored:
        console().print(f"{args.case} is {case.kernel.path} on its sample inputs: warpwave check {case.kernel.path}")
        return AGREE
    text = script_of(args.case, args.target, shorten=args.shrink)
    if text is None:
        console().print(f"{args.case} does not fail on {args.target}")
        return ERROR
    print(text)
    return AGREE


ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "compare": _compare,
    "against": _against,
    "report": _report,
    "merge": _merge,
    "show": _show,
}
COMMAND = Functions("run programs on all targets, keep records, compare machines", add_arguments, run_command)
