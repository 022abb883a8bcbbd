"""Vendor back ends. Each is a plug-in found through the entry-point group `warpwave.backends`."""

from __future__ import annotations
