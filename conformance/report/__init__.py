"""One page about one or more records: which ops agree on which targets, how close to the bounds, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpwave.conformance.records import Record
from warpwave.conformance.report.facts import gather
from warpwave.conformance.report.markdown import markdown
from warpwave.conformance.report.page import page

__all__ = ["write_report"]


def write_report(records: Sequence[Record], out: Path) -> list[Path]:
    """Write the HTML page, and the same as Markdown beside it; a folder that is not there is made."""
    facts = gather(records)
    text = out.with_suffix(".md")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(facts))
    text.write_text(markdown(facts))
    return [out, text]
