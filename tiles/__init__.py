"""The hardware-neutral tile language: types, ops, kernels, and the front door to the backends."""

from __future__ import annotations
