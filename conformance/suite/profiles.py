"""Which cases a profile runs: quick for every change, full for a record, soak for a night."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warpwave.conformance.suite.library import sample_counts
from warpwave.conformance.suite.make import probe_names
from warpwave.conformance.suite.ops import case_names


@dataclass(frozen=True)
class Profile:
    """How many generated programs, and which of the fixed cases: all, or those of the `quick` set."""

    programs: int
    fixed: str


PROFILES: Mapping[str, Profile] = {
    "quick": Profile(40, "quick"),
    "full": Profile(400, "all"),
    "soak": Profile(10_000, "none"),
}
PROGRAMS_APART = 1_000_000


def profile(name: str, seed: int = 0, programs: int | None = None) -> list[str]:
    """The cases of a profile; seeds do not overlap for up to PROGRAMS_APART programs each."""
    chosen = PROFILES[name]
    first = seed * PROGRAMS_APART
    count = chosen.programs if programs is None else programs
    generated = [f"program:{first + i}" for i in range(count)]
    if chosen.fixed == "none":
        return generated
    samples = {n: (c if chosen.fixed == "all" else min(c, 1)) for n, c in sample_counts().items()}
    library = [f"kernel:{name}:{i}" for name, count in samples.items() for i in range(count)]
    return [*case_names(), *probe_names(), *library, *generated]
