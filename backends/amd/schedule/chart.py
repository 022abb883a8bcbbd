"""The picture of a schedule: groups of waves over time, their clusters, loads in flight, and barriers.

Time is the schedule's own: what lies between two barriers is as wide as the longest of it, with matrix and vector
work by its cycles and each memory instruction as long as the LDS takes for one. It says who overlaps whom, not how
long anything takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from warpwave.backends.amd.schedule.form import (
    Cluster,
    Compute,
    LoadDirect,
    LoadRegisters,
    Op,
    Pointer,
    Priority,
    Put,
    Read,
    Scalar,
    Schedule,
    Wait,
)
from warpwave.backends.amd.schedule.problems import part_name
from warpwave.backends.amd.schedule.timeline import Event, counts, follow
from warpwave.tiles.drawing.canvas import Canvas, hue
from warpwave.tiles.drawing.data import Chart

CYCLES = 16  # of one memory instruction: 1024 bytes of LDS at 64 bytes a clock
SHORTEST, SCALE = 24.0, 0.22  # pixels of the emptiest interval, and of a cycle
LEFT, ROW, BAR, GAP = 110.0, 34.0, 9.0, 26.0
FILLS = {"memory": "#b6d4f2", "compute": "#f6c28b", "other": "#d9dde2"}
CHARACTER = 6.2  # pixels of one at size 10


@dataclass(frozen=True)
class Span:
    """Ops of one cluster between two barriers, in pixels."""

    cluster: str
    kind: str
    events: tuple[Event, ...]
    start: float
    end: float


def chart(schedule: Schedule, steps: int | None = None) -> Chart:
    """The picture for so many steps; by default prologue, a few rounds, and what is left."""
    if steps is None:
        steps = next(n for n in range(schedule.tail + 3 * schedule.period, 10_000) if schedule.covers(n))
    lines = {group.name: follow(schedule, group.name, steps).events for group in schedule.groups}
    title = f"{schedule.name}, {schedule.target}: {steps} steps"
    canvas = Canvas()
    canvas.text(16, 22, title, size=16, bold=True)
    edges = _edges(lines)
    _draw_phases(canvas, next(iter(lines.values())), edges)
    y = 66.0
    for group, events in lines.items():
        bottom = _draw_group(canvas, schedule, group, events, edges, y)
        _draw_barriers(canvas, edges, y, bottom)
        y = bottom + GAP
    _draw_legend(canvas, y)
    return Chart(title, "\n".join(describe(schedule)), canvas)


def describe(schedule: Schedule) -> Iterator[str]:
    """One line for each cluster."""
    yield f"{schedule.name}, {schedule.target}" + (f", line {schedule.loc.line}" if schedule.loc else "")
    groups = ", ".join(f"{group.name} {group.waves} waves" for group in schedule.groups)
    yield f"groups: {groups}; LDS: " + ", ".join(f"{t.name} {t.parts} x {t.slots} slots" for t in schedule.shared)
    ends = [(f"epilogue, {left} steps left", clusters) for left, clusters in schedule.epilogues.items()]
    for phase, clusters in (("prologue", schedule.prologue), ("body", schedule.body), *ends):
        yield f"{phase}:"
        yield from (f"  {cluster.name}{_only(cluster)}: {'; '.join(map(_short, cluster.ops))}" for cluster in clusters)


def _only(cluster: Cluster) -> str:
    return f" ({', '.join(cluster.only)} only)" if cluster.only else ""


def _short(op: Op) -> str:
    """An op in a few words; steps count from the cluster's first."""
    if isinstance(op, LoadDirect | LoadRegisters):
        return f"load {part_name(op.value, op.value.step)}{_pieces(op.pieces)}"
    if isinstance(op, Read):
        return f"{op.register}{_pieces(op.pieces)} <- {part_name(op.value, op.value.step)}"
    if isinstance(op, Put):
        return f"put {part_name(op.value, op.value.step)}{_pieces(op.pieces)}"
    if isinstance(op, Compute | Scalar):
        return op.name
    if isinstance(op, Pointer):
        return f"M0 = {part_name(op.value, op.value.step)}{_pieces((op.piece,))}"
    if isinstance(op, Wait):
        counters = (("vm", op.vm), ("lgkm", op.lgkm))
        return "wait " + " ".join(f"{name}({value})" for name, value in counters if value is not None)
    return f"priority {op.level}" if isinstance(op, Priority) else type(op).__name__.lower()


def _pieces(pieces: Sequence[int]) -> str:
    return f" {{{', '.join(map(str, pieces))}}}" if pieces else ""


# -- time ---------------------------------------------------------------------------------------------


def _cycles(op: Op) -> float:
    return op.cycles if isinstance(op, Compute) else CYCLES * counts(op)[1]


def _edges(lines: dict[str, list[Event]]) -> list[float]:
    """Where each interval begins, and where the last one ends."""
    most = max(event.interval for events in lines.values() for event in events) + 1
    widest = [0.0] * most
    for events in lines.values():
        for interval, inside in groupby(events, key=lambda event: event.interval):
            widest[interval] = max(widest[interval], sum(_cycles(event.op) for event in inside))
    edges = [LEFT]
    for cycles in widest:
        edges.append(edges[-1] + max(SHORTEST, cycles * SCALE))
    return edges


def _spans(schedule: Schedule, events: Sequence[Event], edges: Sequence[float]) -> Iterator[Span]:
    """The clusters of a group; those of one interval share it by their cycles."""
    kinds = {
        c.name: c.kind for phase in (schedule.prologue, schedule.body, *schedule.epilogues.values()) for c in phase
    }
    for interval, inside in groupby(events, key=lambda event: event.interval):
        x = edges[interval]
        for (cluster, _, _), ops in groupby(inside, key=lambda e: (e.issued.cluster, e.issued.base, e.issued.phase)):
            found = tuple(ops)
            width = sum(_cycles(event.op) for event in found) * SCALE
            yield Span(cluster, kinds[cluster], found, x, x + width)
            x += width


# -- drawing ------------------------------------------------------------------------------------------


def _draw_phases(canvas: Canvas, events: Sequence[Event], edges: Sequence[float]) -> None:
    """Where prologue, rounds and epilogue begin, for the first group."""
    for (phase, base), inside in groupby(events, key=lambda event: (event.issued.phase, event.issued.base)):
        x = edges[next(inside).interval]
        canvas.text(x + 2, 48, phase if phase != "body" else f"step {base}", size=10, fill="#57606a")


def _draw_group(
    canvas: Canvas, schedule: Schedule, group: str, events: Sequence[Event], edges: Sequence[float], y: float
) -> float:
    """Clusters, and below them the loads in flight; where the next group may begin."""
    canvas.text(16, y + ROW / 2, f"group {group}", size=12, bold=True)
    at: dict[int, tuple[float, float]] = {}
    for span in _spans(schedule, events, edges):
        _draw_span(canvas, span, y)
        at.update(_op_places(span))
    canvas.text(16, y + ROW + 12, "loads in flight", size=10, fill="#57606a")
    free: list[float] = []
    colours = sorted({e.op.value.tile for e in events if isinstance(e.op, LoadDirect | LoadRegisters)})
    for event in events:
        op = event.op
        if isinstance(op, LoadDirect | LoadRegisters):
            start = at[event.index][0]
            end = max(at[event.done.index][1] if event.done else edges[-1], start + 2)
            row = next((i for i, until in enumerate(free) if until <= start), len(free))
            free[row : row + 1] = [end]
            name = part_name(op.value, event.issued.step(op.value))
            top = y + ROW + 6 + row * (BAR + 2)
            fill = hue(colours.index(op.value.tile), len(colours), light=0.7)
            canvas.rect(start, top, end - start, BAR, fill=fill, tip=f"{name}: {op.vm} instructions")
            if end - start > len(name) * CHARACTER * 0.8:
                canvas.text(start + 2, top + BAR / 2, name, size=8)
    return y + ROW + 6 + max(len(free), 2) * (BAR + 2)


def _draw_span(canvas: Canvas, span: Span, y: float) -> None:
    words = [_short(event.op) for event in span.events]
    if span.end > span.start:
        tip = f"{span.cluster}\n" + "\n".join(words)
        canvas.rect(span.start, y, span.end - span.start, ROW, fill=FILLS[span.kind], tip=tip)
    room = int((span.end - span.start) / CHARACTER)
    if room >= len(span.cluster):
        canvas.text(span.start + 2, y + 10, span.cluster, size=10, bold=True)
    waits = "; ".join(word for word in words if word.startswith("wait"))
    if waits and room >= len(waits):
        canvas.text(span.start + 2, y + 24, waits, size=9, fill="#57606a")


def _op_places(span: Span) -> Iterator[tuple[int, tuple[float, float]]]:
    """Where in its span each op begins and ends."""
    x = span.start
    for event in span.events:
        end = x + _cycles(event.op) * SCALE
        yield event.index, (x, end)
        x = end


def _draw_barriers(canvas: Canvas, edges: Sequence[float], y: float, bottom: float) -> None:
    for x in edges[1:-1]:
        canvas.rect(x - 1.25, y - 4, 2.5, bottom - y + 8, fill="#57606a")


def _draw_legend(canvas: Canvas, y: float) -> None:
    x = LEFT
    for kind, fill in FILLS.items():
        canvas.rect(x, y, 14, 10, fill=fill)
        canvas.text(x + 20, y + 5, kind, size=10)
        x += 90
    canvas.rect(x, y - 2, 2.5, 14, fill="#57606a")
    canvas.text(
        x + 8, y + 5, "barrier of all waves; widths are the schedule's own estimate, not a measurement", size=10
    )
