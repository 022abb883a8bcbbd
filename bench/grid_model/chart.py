"""The record as pictures: held-out times beside the model's, and the grid tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from warpwave.backends.amd.model.rates import CALIBRATED
from warpwave.bench.grid_model.measured import points


def draw(record: dict[str, Any], path: Path) -> None:
    """Two panels, as PNG."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), width_ratios=(1, 1.3))
    _times(left)
    _tables(right, record["grid tables"])
    figure.tight_layout()
    figure.savefig(path, dpi=100, metadata={"Software": None})
    plt.close(figure)


def _times(axes: Any) -> None:
    held_out = [p for p in points() if not p.calibrates]
    for family, colour in (("multistage", "tab:blue"), ("ping-pong", "tab:orange")):
        of = [p for p in held_out if p.launches[0].kernel.family == family]
        axes.loglog(
            [p.microseconds for p in of], [p.modelled(CALIBRATED) for p in of], ".", ms=4, color=colour, label=family
        )
    ends = [8, 5e4]
    axes.loglog(ends, ends, color="black", lw=0.8)
    for factor in (0.85, 1.15):
        axes.loglog(ends, [factor * x for x in ends], color="grey", lw=0.6, ls="--")
    axes.set(xlabel="measured us", ylabel="modelled us", title="41 shapes not used for calibration (dashed: 15 %)")
    axes.legend()


def _tables(axes: Any, tables: dict[str, Any]) -> None:
    rows = [row for table in tables.values() for row in table]
    places = range(len(rows))
    axes.bar([p - 0.2 for p in places], [r["published"]["tflops"] for r in rows], 0.4, label="published", color="grey")
    axes.bar(
        [p + 0.2 for p in places], [r["modelled"]["tflops"] for r in rows], 0.4, label="modelled", color="tab:green"
    )
    axes.set_xticks(list(places), [f"{r['size']}\n{r['order'].replace(' ', chr(10))}" for r in rows], fontsize=8)
    axes.set(ylabel="TFLOPS", title="HipKittens' grid orders on MI355X: table 4, window sweep")
    axes.legend(loc="lower right")
