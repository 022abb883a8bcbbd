"""Tests of the NVIDIA backend."""

from __future__ import annotations
