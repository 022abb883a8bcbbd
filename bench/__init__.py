"""Side-by-side measurements of kernels against what a user would pick instead."""

from __future__ import annotations
