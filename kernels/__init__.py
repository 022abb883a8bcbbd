"""Kernels written in the tile language, each once for all targets: one family a file, no vendor's name anywhere."""

from __future__ import annotations
