"""The page of seeded defects: `python -m warpwave.conformance.defects > docs/seeded_defects.md`."""

from __future__ import annotations

from collections.abc import Sequence

from warpwave.conformance.defects.defect import Defect
from warpwave.conformance.defects.hunt import Catch
from warpwave.conformance.defects.registry import FUNCTIONS, LANES, LAUNCH, MEMORY, TRANSLATION

HEAD = """# Seeded defects

Plausible bugs of a backend, put into the AMD backend one at a time (`conformance/defects/registry.py`), and the first
case of a conformance profile that noticed each: {quick} of {total} by the quick profile, {all} by quick or full. A case
counts only if it is well without the defect. `pytest -m sweep conformance/tests/test_defects.py` repeats this; the page
is printed by `python -m warpwave.conformance.defects`. Everything here ran on the simulator.

"""
FAMILIES: tuple[tuple[str, Sequence[Defect]], ...] = (
    ("An op translated wrongly", TRANSLATION),
    ("A function or conversion that is wrong", FUNCTIONS),
    ("The wrong lane or operand", LANES),
    ("Memory, masks and waits", MEMORY),
    ("Launch and arguments", LAUNCH),
)


def page(catches: Sequence[tuple[str, Catch]]) -> str:
    """The whole page, from the profile that noticed each defect (or the last one tried) and how."""
    found = {catch.defect: (profile, catch) for profile, catch in catches}
    quick = sum(catch.caught and profile == "quick" for profile, catch in found.values())
    caught = sum(catch.caught for _, catch in found.values())
    head = HEAD.format(quick=quick, total=len(found), all=caught)
    return head + "\n".join(_family(title, defects, found) for title, defects in FAMILIES)


def _family(title: str, defects: Sequence[Defect], found: dict[str, tuple[str, Catch]]) -> str:
    rows = "".join(_row(defect, *found[defect.name]) for defect in defects if defect.name in found)
    return f"## {title}\n\n| defect | what | profile | noticed by | how |\n|---|---|---|---|---|\n{rows}"


def _row(defect: Defect, profile: str, catch: Catch) -> str:
    where = f"`{catch.case}` on {catch.target}" if catch.caught else "nothing"
    how = catch.how.replace("|", "\\|")
    return f"| {defect.name} | {defect.what} | {profile} | {where} | {how} |\n"
