"""Where a record was made: enough to explain a difference, nothing that names a person or a place."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Sequence

from warpwave.tiles.runtime import registry

PACKAGES = ("warpwave", "numpy", "ml_dtypes", "cupy-cuda12x", "cupy-cuda13x", "torch", "ziglang", "hip-python")


def environment(targets: Sequence[str]) -> dict[str, str]:
    """Python, machine type, package versions, and what ran each target."""
    found = {"python": sys.version.split()[0], "machine": platform.machine(), "system": platform.system()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    for target in targets:
        base = target.removesuffix(registry.SIMULATED)
        known = next((t for t in registry.targets() if t.name == base), None)
        runs = known.runs if known else ""
        found[f"target {target}"] = "simulator" if target != base else runs or "nothing"
    return found
