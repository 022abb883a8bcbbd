"""AMD CDNA3 (gfx942) and CDNA4 (gfx950)."""

from __future__ import annotations
