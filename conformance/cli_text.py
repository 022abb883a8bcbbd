"""What `warpwave conformance` prints: progress, a summary of each target, the differences of two records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from warpwave.conformance.records import Comparison, Journal, Record
from warpwave.conformance.records.compare import Difference, by_pair
from warpwave.conformance.runners.outcome import Outcome, Status
from warpwave.conformance.session import Plan, Watch
from warpwave.conformance.verdicts import Level
from warpwave.tiles.cli.command import AGREE, DISAGREE, ERROR
from warpwave.tiles.cli.console import console, escape, print_table, progress

SHOWN = 12
COLOURS = {Level.BIT_EXACT: "green", Level.WITHIN: "cyan", Level.UNKNOWN: "yellow", Level.VIOLATION: "red"}


@contextmanager
def progress_of(plan: Plan, journal: Journal) -> Iterator[Watch]:
    """A bar on a terminal, and a line at once for whatever is bad."""
    cases = plan.cases
    done = sum(not journal.missing(c, list(plan.targets)) for c in cases)
    with progress(len(cases)) as bar:
        bar.advance(bar.task_ids[0], done)

        def watch(outcomes: list[Outcome]) -> None:
            for outcome in outcomes:
                if outcome.bad:
                    bar.console.print(f"[red]{escape(bad_line(outcome))}[/]")
            bar.advance(bar.task_ids[0])

        yield watch


def bad_line(outcome: Outcome) -> str:
    """What is wrong, in one line."""
    if outcome.problem:
        return f"{outcome.case} on {outcome.target}: {outcome.problem.splitlines()[0]}"
    v = max(outcome.verdicts, key=lambda v: v.ratio)
    where = f"{v.output}{list(v.index)}"
    return f"{outcome.case} on {outcome.target}: {where} is {v.got:.8g}, expected {v.want:.8g} within {v.bound:.3g}"


def print_outcomes(record: Record) -> int:
    """A row for each target, then what is bad; the number of bad outcomes."""
    outcomes = [r.outcome for r in record.results]
    rows = [_target_row(t, [o for o in outcomes if o.target == t]) for t in record.targets]
    heads = ("target", "cases", "bit-exact", "within contract", "violation", "error", "refused", "tightest", "s/case")
    print_table("Every output against what the contract allows on its target", heads, rows)
    bad = [o for o in outcomes if o.bad]
    for outcome in bad[:SHOWN]:
        console().print(f"[red]{escape(bad_line(outcome))}[/]", soft_wrap=True)
    if len(bad) > SHOWN:
        console().print(f"... and {len(bad) - SHOWN} more")
    for reason, count in refusals(outcomes).most_common(4):
        console().print(f"refused {count} times: {escape(reason)}", soft_wrap=True)
    if bad:
        console().print("`warpwave conformance show CASE --target TARGET --shrink` prints a short script that fails")
    return len(bad)


def refusals(outcomes: Sequence[Outcome]) -> Counter[str]:
    """Why targets refused cases, numbers left out so that like reasons count together."""
    reasons = (o.problem.splitlines()[0] for o in outcomes if o.status is Status.REFUSED and o.problem)
    return Counter("".join("#" if c.isdigit() else c for c in reason)[:140].replace("##", "#") for reason in reasons)


def _target_row(target: str, outcomes: list[Outcome]) -> tuple[str, ...]:
    ok = [o for o in outcomes if o.status is Status.OK]
    levels = Counter(o.level for o in ok)
    status = Counter(o.status for o in outcomes)
    known = levels[Level.WITHIN] + levels[Level.UNKNOWN]
    violations = f"[red]{levels[Level.VIOLATION]}[/]" if levels[Level.VIOLATION] else "0"
    errors = f"[red]{status[Status.ERROR]}[/]" if status[Status.ERROR] else "0"
    seconds = sum(o.seconds for o in outcomes) / max(len(outcomes), 1)
    tight = max((v.ratio for o in ok for v in o.verdicts if v.level is not Level.VIOLATION), default=0.0)
    exact = f"[green]{levels[Level.BIT_EXACT]}[/]"
    numbers = (str(len(outcomes)), exact, str(known), violations, errors, str(status[Status.REFUSED]))
    return (target, *numbers, f"{tight:.2f}", f"{seconds:.2f}")


def print_comparison(comparison: Comparison) -> int:
    """A row for each pair of targets, then what is not explained; the exit status."""
    rows = [_pair_row(pair, differences) for pair, differences in by_pair(comparison)]
    levels = ("bit-exact", "within both bounds", "unknown", "violation")
    heads = ("first", "second", "outputs", *levels, "largest share of the bounds")
    print_table("Every output of one machine against the other's", heads, rows)
    for difference in comparison.violations[:SHOWN]:
        v = difference.verdict
        what = f"{difference.case} {v.output}: {v.want:.8g} and {v.got:.8g}, allowed {v.bound:.3g}"
        console().print(f"[red]{escape(what)}[/]", soft_wrap=True)
    known = Counter(d.why for d in comparison.differences if d.why)
    for why, count in known.most_common(SHOWN):
        console().print(f"known difference of {count} outputs: {escape(why)}", soft_wrap=True)
    for surprise in comparison.surprises[:SHOWN]:
        console().print(f"[red]ledger: {escape(str(surprise))}[/]", soft_wrap=True)
    for why, cases in comparison.left_out.items():
        console().print(f"not compared, {escape(why)}: {len(set(cases))} cases, such as {cases[0]}")
    if not comparison.differences:
        return ERROR
    return DISAGREE if comparison.violations or comparison.surprises else AGREE


def _pair_row(pair: tuple[str, str], differences: list[Difference]) -> tuple[str, ...]:
    levels = Counter(d.verdict.level for d in differences)
    counts = [f"[{COLOURS[level]}]{levels[level]}[/]" if levels[level] else "0" for level in Level]
    share = max((d.verdict.ratio for d in differences if d.verdict.level is Level.WITHIN), default=0.0)
    return (*pair, str(len(differences)), *counts, f"{share:.2f}")
