"""`python -m warpwave.conformance.ledger_page` prints docs/ledger.md: the known differences, with each side's bits."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from warpwave.conformance.ledger import ENTRIES, Entry
from warpwave.conformance.probes import PROBES, Bits

HEAD = """# Ledger of known differences

Where targets give different bits, and why. Each entry has a probe (`conformance/probes.py`) that runs on every side
that needs no device: the reference, both AMD simulators, and the models of NVIDIA's matrix instructions. A difference
that is not listed fails `conformance/tests/test_ledger.py`, and so does an entry that no longer shows. What only a
device can give is stated from the PTX ISA; `python -m warpwave.conformance.ptx` confirms it on a GPU, and a record of
a device confirms the kernels. This page is printed by `python -m warpwave.conformance.ledger_page > docs/ledger.md`.

`within`: the contract's bound covers both. `unknown`: an overflow, of which the contract says nothing. `undefined`:
the language leaves it open. `kept out`: the instructions differ, but `ww` ops give one result on all targets.

"""
TAIL = """
## Probes on which all sides agree

{names}.
"""


def page() -> str:
    """The whole page."""
    listed = {entry.name for entry in ENTRIES}
    agreeing = ", ".join(f"`{name}`" for name in PROBES if name not in listed)
    return HEAD + "\n".join(map(_entry, ENTRIES)) + TAIL.format(names=agreeing)


def _entry(entry: Entry) -> str:
    rows = "".join(f"| {', '.join(sides)} | {basis} | {bits} |\n" for sides, basis, bits in _grouped(entry))
    what = f"`{entry.op}`{' on ' + ', '.join(entry.dtypes) if entry.dtypes else ''}"
    lines = [
        f"## {entry.name}",
        "",
        f"{entry.title}. {what}; {entry.contract}. {entry.why}. Source: {entry.source}.",
        "",
    ]
    return "\n".join([*lines, *_instructions(entry.instructions), "| sides | basis | bits |", "|---|---|---|", rows])


def _grouped(entry: Entry) -> list[tuple[list[str], str, str]]:
    """Sides that give the same on the same basis."""
    groups: dict[tuple[str, Bits], list[str]] = {}
    for side, bits in entry.predictions.items():
        groups.setdefault((entry.basis(side), bits), []).append(side)
    return [(sides, basis, " ".join(f"`{b:#x}`" for b in bits)) for (basis, bits), sides in groups.items()]


def _instructions(texts: Mapping[str, str]) -> list[str]:
    if not texts:
        return []
    return ["; ".join(f"`{text}`" for text in dict.fromkeys(texts.values())) + ".", ""]


if __name__ == "__main__":
    sys.stdout.write(page())
