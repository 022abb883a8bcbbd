"""Measurements and checks on an H200: run `python -m warpwave.bench.h200.run` and `... .check` there."""

from __future__ import annotations
