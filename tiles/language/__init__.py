"""The ops of the language, one file per family, and the handles that kernel variables hold."""

from __future__ import annotations
