"""`warpwave show --schedule`: what the loops of a kernel do in time, as text or drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwave.tiles.drawing import Chart, write
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.ir import Kernel
from warpwave.tiles.runtime import registry


def show_schedule(kernel: Kernel, target: str, output: str | None, options: Mapping[str, Any]) -> str:
    """What to print; the pictures of several loops are numbered files."""
    charts = _charts(kernel, target, options)
    text = "\n\n".join(chart.text for chart in charts)
    if output is None:
        return text
    written = list(zip(charts, _paths(Path(output), len(charts)), strict=True))
    for chart, path in written:
        write(chart.canvas, chart.title, path)
    return "\n".join([text, *(f"written to {path}" for _, path in written)])


def _charts(kernel: Kernel, target: str, options: Mapping[str, Any]) -> Sequence[Chart]:
    backend = registry.resolve(target)
    charts: Sequence[Chart] = backend.schedules(kernel, target, options) if hasattr(backend, "schedules") else ()
    if not charts:
        hint = "--explain says which schedule was chosen; --option schedule=... asks for one"
        raise UnsupportedError(f"no loop of {kernel.name} has a generated schedule for {target}", hint=hint)
    return charts


def _paths(output: Path, count: int) -> list[Path]:
    if count == 1:
        return [output]
    return [output.with_stem(f"{output.stem}-{number}") for number in range(1, count + 1)]
