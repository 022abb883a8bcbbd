"""Lowering: IR to HIP C++, one file per family of ops."""

from __future__ import annotations
