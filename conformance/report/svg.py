"""The plots of the report, as inline SVG without any library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

LEFT, RIGHT, ROW, TOP = 210, 24, 19, 30
LOWEST = 1e-3
COLOURS = ("var(--t0)", "var(--t1)", "var(--t2)", "var(--t3)", "var(--t4)", "var(--t5)")


@dataclass(frozen=True)
class Dot:
    """One mark: `share` of the bound, for one of the series."""

    series: int
    share: float
    text: str


def dot_plot(rows: Mapping[str, Sequence[Dot]], width: int = 900) -> str:
    """A row for each op: how much of its bound each target used, on a logarithmic axis that ends at the bound."""
    height = TOP + ROW * len(rows) + 34
    parts = [f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="worst error as a share of the bound">']
    for share in (0.001, 0.01, 0.1, 0.5, 1.0):
        x = _x(share, width)
        kind = "limit" if share == 1 else "rule"
        label = "bound" if share == 1 else f"{share:g}"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{height - 26}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{height - 10}" text-anchor="middle">{label}</text>')
    for i, (name, dots) in enumerate(rows.items()):
        parts += _dot_row(name, dots, TOP + ROW * i + ROW / 2, width)
    return "\n".join([*parts, "</svg>"])


def _dot_row(name: str, dots: Sequence[Dot], y: float, width: int) -> list[str]:
    parts = [
        f'<line class="row" x1="{LEFT}" x2="{width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>',
        f'<text class="name" x="{LEFT - 10}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>',
    ]
    for dot in dots:
        x = _x(dot.share, width)
        shift = (dot.series % 3 - 1) * 3.2
        title = f"<title>{escape(dot.text)}</title>"
        colour = COLOURS[dot.series % len(COLOURS)]
        parts.append(f'<circle cx="{x:.1f}" cy="{y + shift:.1f}" r="4" fill="{colour}">{title}</circle>')
    return parts


def _x(share: float, width: int) -> float:
    position = (math.log10(min(max(share, LOWEST), 1.6)) - math.log10(LOWEST)) / -math.log10(LOWEST)
    return LEFT + (width - LEFT - RIGHT - 40) * position


def histogram(series: Mapping[str, Sequence[float]], width: int = 900, bins: int = 20) -> str:
    """How many outputs used which share of their bound, one line of bars for each target."""
    shown = [(COLOURS[i % len(COLOURS)], *item) for i, item in enumerate(series.items()) if item[1]]
    band, height = 74, 74 * len(shown) + 40
    parts = [f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="shares of the bounds">']
    span = width - LEFT - RIGHT
    for i, (colour, name, values) in enumerate(shown):
        counts = [0] * bins
        for value in values:
            counts[min(int(value * bins), bins - 1)] += 1
        base, most = band * (i + 1), max([*counts, 1])
        parts.append(f'<text class="name" x="{LEFT - 10}" y="{base - 26}" text-anchor="end">{escape(name)}</text>')
        parts.append(
            f'<text class="tick" x="{LEFT - 10}" y="{base - 10}" text-anchor="end">{len(values)} outputs</text>'
        )
        parts.append(f'<line class="row" x1="{LEFT}" x2="{width - RIGHT}" y1="{base}" y2="{base}"/>')
        for b, count in enumerate(counts):
            tall = (band - 22) * math.log1p(count) / math.log1p(most)
            left, title = (
                LEFT + span * b / bins,
                f"<title>{count} outputs from {b / bins:g} to {(b + 1) / bins:g}</title>",
            )
            box = f'x="{left + 1:.1f}" y="{base - tall:.1f}" width="{span / bins - 2:.1f}" height="{tall:.1f}"'
            parts.append(f'<rect {box} fill="{colour}">{title}</rect>')
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = LEFT + span * share
        label = "bound" if share == 1 else f"{share:g}"
        parts.append(f'<text class="tick" x="{x:.1f}" y="{height - 14}" text-anchor="middle">{label}</text>')
    return "\n".join([*parts, "</svg>"])
