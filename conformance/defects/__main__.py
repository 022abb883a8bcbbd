"""Hunts every seeded defect and prints the page; takes minutes."""

from __future__ import annotations

import sys

from warpwave.conformance.defects import DEFECTS, Catch, Defect, hunt
from warpwave.conformance.defects.page import page


def hunted(defect: Defect) -> tuple[str, Catch]:
    """By the quick profile, else by the full one."""
    catch = hunt(defect, "quick")
    print(f"{defect.name}: {catch.case or 'not by the quick profile'}", file=sys.stderr)
    return ("quick", catch) if catch.caught else ("full", hunt(defect, "full"))


if __name__ == "__main__":
    sys.stdout.write(page([hunted(defect) for defect in DEFECTS]))
