"""Which kernel is being captured on this thread; the ops of the language append to its builder."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from warpwave.tiles.errors import CaptureError
from warpwave.tiles.ir import Builder


class _Current(threading.local):
    builder: Builder | None = None


_current = _Current()


def builder() -> Builder:
    """The builder of the kernel being captured; CaptureError outside a kernel."""
    if _current.builder is None:
        raise CaptureError(
            "an op of the language was used outside a kernel",
            hint="call it from a function under @ww.kernel, or from a helper that a kernel calls",
        )
    return _current.builder


def is_capturing() -> bool:
    """Whether a kernel is being captured on this thread."""
    return _current.builder is not None


@contextmanager
def capturing(new: Builder) -> Iterator[Builder]:
    """Make `new` the current builder of this thread."""
    outer, _current.builder = _current.builder, new
    try:
        yield new
    finally:
        _current.builder = outer
