"""The HTML page: self-contained, no script, readable in light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files

from warpwave.conformance.cli_text import bad_line
from warpwave.conformance.ledger import ENTRIES
from warpwave.conformance.records.compare import by_pair
from warpwave.conformance.report.facts import Cell, Facts, Grid, Summary, formats_of
from warpwave.conformance.report.svg import COLOURS, Dot, dot_plot, histogram
from warpwave.conformance.verdicts import Level

KINDS = ("bit-exact", "within", "unknown", "violation", "error", "refused")
MEANINGS = {
    "bit-exact": "the bits of the target's modelled arithmetic",
    "within": "within the bound that the op allows",
    "unknown": "nothing is promised there",
    "violation": "outside the bound",
    "error": "failed to compile or to run",
    "refused": "the target says that it cannot",
}
TIGHTEST = 36
WIDE = 5


def page(facts: Facts) -> str:
    """The whole page."""
    style = files("warpwave.conformance.report").joinpath("page.css").read_text()
    run = facts.record.run
    about = ", ".join(f"{k} {v}" for k, v in run.items() if k in ("profile", "seed", "programs") and v is not None)
    body = [
        "<h1>Warpwave conformance</h1>",
        f'<p class="dim">{escape(about)}{"" if facts.record.complete else "; stopped before its end"}</p>',
        _cards(facts),
        "<h2>Targets</h2>",
        _summaries(facts.summaries),
        _grid_section(facts),
        _plots(facts),
        _pairs(facts),
        _ledger(),
        _bad(facts),
        _environments(facts),
    ]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>{style}</style>'
    title = "<title>Warpwave conformance</title>"
    return (
        f'<!doctype html><html lang="en"><head>{head}{title}</head><body><main>{"".join(body)}</main></body></html>\n'
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "", numbers: Sequence[int] = ()) -> str:
    """A table; cells are HTML already."""
    mark = [' class="n"' if i in numbers else "" for i in range(len(heads))]
    head = "".join(f"<th{m}>{h}</th>" for m, h in zip(mark, heads, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{m}>{c}</td>" for m, c in zip(mark, row, strict=True)) + "</tr>" for row in rows
    )
    return f'<div class="scroll"><table class="{kind}"><tr>{head}</tr>{body}</table></div>'


def _cards(facts: Facts) -> str:
    total = sum(s.cases for s in facts.summaries)
    outputs = sum(len(r.outcome.verdicts) for r in facts.record.results)
    elements = sum(v.elements for r in facts.record.results for v in r.outcome.verdicts)
    numbers = [(f"{total:,}", "runs of a case on a target", False), (f"{outputs:,}", "outputs compared", False)]
    numbers += [(f"{elements:,}", "elements compared", False), (f"{len(facts.bad):,}", "violations and errors", True)]
    cards = (
        f'<div class="card{" bad" if bad and text != "0" else ""}"><b>{text}</b>{what}</div>'
        for text, what, bad in numbers
    )
    return f'<div class="cards">{"".join(cards)}</div>'


def _summaries(summaries: Sequence[Summary]) -> str:
    heads = (
        "target",
        "ran on",
        "cases",
        "bit-exact",
        "within",
        "unknown",
        "violation",
        "error",
        "refused",
        "largest share of a bound",
    )
    rows = [
        (
            f"{_swatch(i)}<b>{escape(s.target)}</b>",
            escape(s.ran_on),
            f"{s.cases:,}",
            *(f"{s.levels.get(level, 0):,}" for level in Level),
            f"{s.errors:,}",
            f"{s.refused:,}",
            f"{s.tightest:.2f}",
        )
        for i, s in enumerate(summaries)
    ]
    return table(heads, rows, numbers=range(2, 10))


def _swatch(index: int) -> str:
    return f'<span class="swatch" style="background:{COLOURS[index % len(COLOURS)]}"></span>'


def _grid_section(facts: Facts) -> str:
    legend = "".join(f'<span><i class="box {k}"></i>{k}: {MEANINGS[k]}</span> ' for k in KINDS)
    order = ", ".join(facts.targets)
    parts = ["<h2>Every op on every format</h2>", f'<p class="legend">{legend}</p>']
    parts.append(
        f"<p>In each cell one box for each target, in this order: {escape(order)}. Point at a box for figures.</p>"
    )
    narrow_first = sorted(facts.grid.items(), key=lambda item: len(formats_of(item[1])) > WIDE)
    families = (_family(name, rows, facts.targets) for name, rows in narrow_first)
    return "".join([*parts, f'<div class="families">{"".join(families)}</div>'])


def _family(name: str, rows: Grid, targets: Sequence[str]) -> str:
    formats = formats_of(rows)
    body = [
        [escape(op), *(_boxes(cells.get(f, {}), targets, f"{op} {f}") for f in formats)] for op, cells in rows.items()
    ]
    return f"<section><h3>{escape(name)}</h3>{table(['', *formats], body, 'grid')}</section>"


def _boxes(cells: Mapping[str, Cell], targets: Sequence[str], what: str) -> str:
    boxes = []
    for target in targets:
        if target in cells:
            cell = cells[target]
            boxes.append(f'<i class="box {cell.kind}" title="{escape(f"{what} on {target}: {cell.text}")}"></i>')
    return "".join(boxes)


def _plots(facts: Facts) -> str:
    rows = tightness_rows(facts)
    legend = " ".join(f"<span>{_swatch(i)}{escape(t)}</span>" for i, t in enumerate(facts.targets))
    return "".join(
        [
            "<h2>Errors against bounds</h2>",
            "<p>The worst error of an op as a share of what its bound allows there, for the ops that come closest. "
            "A mark right of the red line would be a violation; marks far left say that the bound is generous.</p>",
            f'<p class="legend">{legend}</p>',
            dot_plot(rows),
            "<h3>Generated programs</h3>",
            "<p>How much of its bound each inexact output of a generated program used (heights are logarithmic).</p>",
            histogram(facts.ratios),
        ]
    )


def tightness_rows(facts: Facts) -> dict[str, list[Dot]]:
    """The ops that came closest to their bounds, closest first."""
    rows: dict[str, list[Dot]] = {}
    for family in facts.grid.values():
        for op, cells in family.items():
            for dtype, by_target in cells.items():
                dots = [
                    Dot(i, by_target[t].verdict.ratio, f"{op} {dtype} on {t}: {by_target[t].text}")  # type: ignore[union-attr]
                    for i, t in enumerate(facts.targets)
                    if t in by_target and by_target[t].verdict and by_target[t].kind != "bit-exact"
                ]
                if dots:
                    rows[f"{op} {dtype}"] = dots
    order = sorted(rows, key=lambda name: -max(d.share for d in rows[name]))
    return {name: rows[name] for name in order[:TIGHTEST]}


def _pairs(facts: Facts) -> str:
    heads = ("first", "second", "outputs", "bit-exact", "within both bounds", "unknown", "violation", "largest share")
    rows = []
    for (a, b), differences in by_pair(facts.pairs):
        counts = [sum(d.verdict.level is level for d in differences) for level in Level]
        share = max((d.verdict.ratio for d in differences if d.verdict.level is Level.WITHIN), default=0.0)
        rows.append((escape(a), escape(b), f"{len(differences):,}", *(f"{c:,}" for c in counts), f"{share:.2f}"))
    text = "<p>Each output of one target against the other's: the two bounds together must explain the difference.</p>"
    return f"<h2>Targets against each other</h2>{text}{table(heads, rows, numbers=range(2, 8))}" if rows else ""


def _ledger() -> str:
    rows = [
        (f"<code>{escape(e.name)}</code>", escape(e.title), escape(e.contract), _predictions(e.predictions))
        for e in ENTRIES
    ]
    text = (
        "<p>Differences that are known, each with the bits that every side gives. One that is not listed fails a test, "
        "as does one that no longer shows.</p>"
    )
    shown = table(("name", "what differs", "contract", "bits by side"), rows)
    return f"<h2>Ledger of known differences</h2>{text}{shown}"


def _predictions(predictions: Mapping[str, Sequence[int]]) -> str:
    sides: dict[str, list[str]] = {}
    for side, bits in predictions.items():
        text = " ".join(f"{b:x}" for b in bits[:6]) + (" …" if len(bits) > 6 else "")
        sides.setdefault(text, []).append(side)
    return "<br>".join(f"{escape(', '.join(names))}: <code>{text}</code>" for text, names in sides.items())


def _bad(facts: Facts) -> str:
    parts = []
    if facts.bad:
        rows = [(_code(o.case), escape(o.target), _code(bad_line(o))) for o in facts.bad[:200]]
        parts.append(f"<h2>Violations and errors</h2>{table(('case', 'target', 'what'), rows)}")
    if facts.refused:
        reasons = [(str(count), escape(reason)) for reason, count in facts.refused.most_common(20)]
        parts.append(f"<h2>Refused</h2>{table(('times', 'reason'), reasons, numbers=(0,))}")
    return "".join(parts)


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _environments(facts: Facts) -> str:
    names = list(dict.fromkeys(k for e in facts.environments for k in e))
    rows = [(escape(n), *(escape(e.get(n, "")) for e in facts.environments)) for n in names]
    heads = ("", *(f"record {i + 1}" for i in range(len(facts.environments))))
    return f"<h2>Environment</h2>{table(heads, rows)}"
