"""The cases: what is run on every target, each known by a text that gives it again on any machine."""

from __future__ import annotations

from warpwave.conformance.suite.case import Case, stored_case
from warpwave.conformance.suite.make import make_case
from warpwave.conformance.suite.profiles import PROFILES, profile

__all__ = ["PROFILES", "Case", "make_case", "profile", "stored_case"]
