"""Runs cases on targets: one at a time in this process, or many over processes with a journal."""

from __future__ import annotations

from warpwave.conformance.runners.outcome import Outcome, Status
from warpwave.conformance.runners.run_case import check_cases, execute, run_case

__all__ = ["Outcome", "Status", "check_cases", "execute", "run_case"]
