"""NVIDIA Ampere (sm80), Ada (sm89) and Hopper (sm90a)."""

from __future__ import annotations
