"""Two targets' results, from records alone: each difference is bit-exact, within contract, or a violation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from warpwave.conformance.ledger import Outcome as Confirmation
from warpwave.conformance.ledger import confirm, explain
from warpwave.conformance.probes import bits_of
from warpwave.conformance.records.kept import Array, Kept
from warpwave.conformance.records.record import Record, Result
from warpwave.conformance.runners.outcome import Status
from warpwave.conformance.runners.run_case import Expectation
from warpwave.conformance.verdicts import Level, Verdict, between
from warpwave.tiles.reference import Estimate
from warpwave.tiles.reference.comparison import worst_element


@dataclass(frozen=True)
class Difference:
    """One output of one case on two targets."""

    case: str
    label: tuple[str, str]
    targets: tuple[str, str]
    verdict: Verdict

    @property
    def why(self) -> str | None:
        """What the ledger knows about differences of this op on these targets, if there is one."""
        if self.verdict.level is Level.BIT_EXACT or not self.label[1]:
            return None
        op, dtype = self.label
        return explain(re.split(r"[ _]", op)[0] if op.startswith(("mma", "cast")) else op, dtype, *self.targets)


@dataclass
class Comparison:
    """All outputs that both records hold, and why others could not be compared."""

    differences: list[Difference] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    ledger: list[Confirmation] = field(default_factory=list)

    def skip(self, why: str, case: str) -> None:
        """A case that is in one record only, or not the same in both."""
        self.left_out.setdefault(why, []).append(case)

    def count(self, level: Level) -> int:
        """How many outputs differ that much."""
        return sum(d.verdict.level is level for d in self.differences)

    @property
    def surprises(self) -> list[Confirmation]:
        """Results that the ledger of known differences predicts otherwise."""
        return [o for o in self.ledger if not o.holds]

    @property
    def violations(self) -> list[Difference]:
        """What the two bounds do not explain."""
        return [d for d in self.differences if d.verdict.level is Level.VIOLATION]


def compare(a: Record, b: Record, known: Mapping[str, Expectation] | None = None) -> Comparison:
    """Every target of one record with every target of the other, case by case.

    What cases should give need not be computed again where it is `known` by the case's text.
    """
    found = Comparison()
    theirs: dict[str, list[Result]] = {}
    for result in b.results:
        theirs.setdefault(result.outcome.case, []).append(result)
    found.ledger = [*_confirmed(a), *_confirmed(b)]
    for case, mine in _by_case(a).items():
        if case not in theirs:
            found.skip("only in the first record", case)
            continue
        pairs = [(x, y) for x in mine for y in theirs[case] if _comparable(x, y, found)]
        if pairs:
            _compare_case((known or {}).get(case) or Expectation(a.case(case)), pairs, found)
    return found


def _confirmed(record: Record) -> list[Confirmation]:
    """The bits of each probe in a record against the ledger."""
    probes = [r for r in record.results if r.outcome.case.startswith("ledger:") and r.outcome.status is Status.OK]
    return [
        confirm(r.outcome.case.split(":", 1)[1], r.outcome.target, bits_of(_whole(r.outputs["out"]))) for r in probes
    ]


def _whole(kept: Kept) -> Array:
    assert kept.whole, "a probe is small"
    return kept.elements.reshape(kept.shape)


def _by_case(record: Record) -> dict[str, list[Result]]:
    grouped: dict[str, list[Result]] = {}
    for result in record.results:
        grouped.setdefault(result.outcome.case, []).append(result)
    return grouped


def _comparable(x: Result, y: Result, found: Comparison) -> bool:
    for result in (x, y):
        if result.outcome.status is not Status.OK:
            found.skip(f"{result.outcome.status.value} on {result.outcome.target}", result.outcome.case)
            return False
    if x.outcome.inputs != y.outcome.inputs:
        found.skip("the inputs are not the same", x.outcome.case)
        return False
    return True


def _compare_case(expectation: Expectation, pairs: list[tuple[Result, Result]], found: Comparison) -> None:
    """The bounds are computed only where some bits differ."""
    case, checked = expectation.case, False
    for x, y in pairs:
        targets = (x.outcome.target, y.outcome.target)
        for name in x.outputs.keys() & y.outputs.keys():
            label = case.labels.get(name, (case.id, ""))
            if x.outputs[name].digest == y.outputs[name].digest:
                verdict = _identical(name, x.outputs[name])
            else:
                if not checked and case.input_digest() != x.outcome.inputs:
                    found.skip("this version makes other inputs", case.id)
                    return
                checked = True
                verdict = _judged(expectation, name, x, y)
            found.differences.append(Difference(case.id, label, targets, verdict))


def _identical(name: str, kept: Kept) -> Verdict:
    empty = np.zeros(0)
    size = int(np.prod(kept.shape, dtype=np.int64))
    nothing_apart = worst_element(empty, empty, empty, empty, empty) | {"elements": size}
    return Verdict(name, **nothing_apart, level=Level.BIT_EXACT, bit_exact=size, drift=0.0)


def _judged(expectation: Expectation, name: str, x: Result, y: Result) -> Verdict:
    """Of the elements that both records hold."""
    left, right = x.outputs[name], y.outputs[name]
    shared, at_left, at_right = np.intersect1d(left.indices, right.indices, return_indices=True)
    parts = [_part(expectation.estimates(r.outcome.target)[name], shared) for r in (x, y)]
    return between(name, left.elements[at_left], right.elements[at_right], *parts)


def _part(estimate: Estimate, at: Array) -> Estimate:
    bound = np.broadcast_to(estimate.bound, estimate.value.shape)
    return Estimate(estimate.value.reshape(-1)[at], bound.reshape(-1)[at])


def by_pair(comparison: Comparison) -> Iterator[tuple[tuple[str, str], list[Difference]]]:
    """The differences of each pair of targets."""
    for pair in dict.fromkeys(d.targets for d in comparison.differences):
        yield pair, [d for d in comparison.differences if d.targets == pair]
