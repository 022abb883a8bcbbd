"""The front door: arrays of any library, kernels as callables, and the backends that compile them."""

from __future__ import annotations
