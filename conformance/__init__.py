"""The numerics contract as tests: what it means that two targets agree."""

from __future__ import annotations
