"""The ledger of known differences between targets: what each side gives, bit for bit, and why.

A probe on which sides differ must have an entry that says so; an entry whose bits no longer come out fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from warpwave.conformance.contract import base_name
from warpwave.conformance.probes import AMD, PROBES, SIDES, Bits, InstructionProbe

Status = Literal["as predicted", "changed", "unlisted", "vanished", "without probe"]
DATA = Path(__file__).parent / "data" / "ledger.json"


@dataclass(frozen=True)
class Entry:
    """One known difference. `name` is its probe's; `measured` are the sides whose bits a device gave.

    `contract` says how the numerics contract takes it: `within` its bound, `unknown` (an overflow), `undefined`
    by the language, or `kept out`: the instructions differ, and lowerings hide it.
    """

    name: str
    title: str
    op: str
    dtypes: tuple[str, ...]
    contract: str
    why: str
    source: str
    predictions: Mapping[str, Bits]
    measured: tuple[str, ...] = ()

    def basis(self, side: str) -> str:
        """Where the bits of a side come from."""
        if side == "reference":
            return side
        if side in self.measured:
            return "measured"
        if side in AMD:
            return "simulated"
        probe = PROBES[self.name]
        return "stated" if isinstance(probe, InstructionProbe) or not probe.modelled else "modelled"

    @property
    def instructions(self) -> Mapping[str, str]:
        """The instruction of each side, for an entry about instructions."""
        probe = PROBES[self.name]
        return probe.texts if isinstance(probe, InstructionProbe) else {}


@dataclass(frozen=True)
class Outcome:
    """What became of one probe or entry; `side` and `got` where bits are not as predicted."""

    name: str
    status: Status
    side: str = ""
    predicted: Bits = ()
    got: Bits = ()

    @property
    def holds(self) -> bool:
        """Whether the ledger says what is."""
        return self.status == "as predicted"

    def __str__(self) -> str:
        bits = f": predicted {_hex(self.predicted)}, got {_hex(self.got)}" if self.side else ""
        return f"{self.name} {self.status}{f' on {self.side}' if self.side else ''}{bits}"


def _hex(bits: Bits) -> str:
    return " ".join(f"{x:#x}" for x in bits) or "nothing"


def load(text: str) -> tuple[Entry, ...]:
    """Entries from JSON."""
    return tuple(_entry(name, fields) for name, fields in json.loads(text).items())


def _entry(name: str, fields: dict[str, Any]) -> Entry:
    sides = fields.pop("predictions")
    predictions = {side: tuple(int(x, 16) for x in bits) for side, bits in sides.items()}
    dtypes, measured = tuple(fields.pop("dtypes")), tuple(fields.pop("measured", ()))
    return Entry(name, dtypes=dtypes, measured=measured, predictions=predictions, **fields)


ENTRIES = load(DATA.read_text())


def check(entries: Iterable[Entry] = ENTRIES, sides: Iterable[str] = SIDES) -> list[Outcome]:
    """Evaluate every probe on every side that needs no device, and compare with the ledger."""
    known = {entry.name: entry for entry in entries}
    outcomes = [Outcome(name, "without probe") for name in known if name not in PROBES]
    for name, probe in PROBES.items():
        results = {side: bits for side in sides if (bits := probe.evaluate(side)) is not None}
        outcomes.append(_compare(name, results, known.get(name)))
    return outcomes


def _compare(name: str, results: Mapping[str, Bits], entry: Entry | None) -> Outcome:
    if entry is None:
        first = _agreed(name) or next(iter(results.values()), ())
        odd = next((side for side, bits in results.items() if bits != first), None)
        return Outcome(name, "as predicted") if odd is None else Outcome(name, "unlisted", odd, first, results[odd])
    if len(set(entry.predictions.values())) < 2:
        return Outcome(name, "vanished")
    for side, bits in results.items():
        if bits != entry.predictions.get(side):
            return Outcome(name, "changed", side, entry.predictions.get(side, ()), bits)
    return Outcome(name, "as predicted")


def _agreed(name: str) -> Bits:
    probe = PROBES[name]
    return probe.agreed if isinstance(probe, InstructionProbe) else ()


def confirm(name: str, target: str, bits: Bits) -> Outcome:
    """A device's bits of a probe against the ledger; a probe without an entry must give the reference's bits.

    What the language leaves undefined is confirmed by any bits.
    """
    side = base_name(target)
    entry = next((e for e in ENTRIES if e.name == name), None)
    if entry is not None and entry.contract == "undefined":
        return Outcome(name, "as predicted")
    predicted = entry.predictions.get(side) if entry else _agreed(name) or PROBES[name].evaluate("reference")
    if predicted is None:
        return Outcome(name, "unlisted", side, (), bits)
    if bits == predicted:
        return Outcome(name, "as predicted")
    return Outcome(name, "changed" if entry else "unlisted", side, predicted, bits)


def explain(op: str, dtype: str, target_a: str, target_b: str) -> str | None:
    """Why results of an op on a dtype may differ between two targets, from the entries in which they do."""
    a, b = base_name(target_a), base_name(target_b)
    titles = [
        e.title
        for e in ENTRIES
        if e.op == op
        and dtype in e.dtypes
        and a in e.predictions
        and e.predictions.get(b) not in (None, e.predictions[a])
    ]
    return "; ".join(titles) or None
