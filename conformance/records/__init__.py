"""Records: what a run computed, in one file that another machine compares with its own."""

from __future__ import annotations

from warpwave.conformance.records.compare import Comparison, compare
from warpwave.conformance.records.journal import Journal
from warpwave.conformance.records.record import Record, Result, read_record, write_record

__all__ = ["Comparison", "Journal", "Record", "Result", "compare", "read_record", "write_record"]
